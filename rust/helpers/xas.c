// SPDX-License-Identifier: GPL-2.0
/* Helpers for operations on an XArray by an xa_state. */

#include <linux/gfp.h>
#include <linux/sched.h>
#include <linux/xarray.h>

__rust_helper void rust_helper_xas_init(struct xa_state *xas,
					struct xarray *xa, unsigned long index)
{
	*xas = (struct xa_state)__XA_STATE(xa, index, 0, 0);
}

/*
 * The entries that follow the one that was loaded, in the same node: the slots that
 * xas_next() would go through without looking at the tree. Returns the first of them,
 * and sets @count to their number.
 */
__rust_helper void __rcu **rust_helper_xas_slots(const struct xa_state *xas,
						 size_t *count)
{
	struct xa_node *node = xas->xa_node;

	*count = 0;
	if (xas_not_node(node) || node->shift)
		return NULL;
	*count = XA_CHUNK_MASK - xas->xa_offset;
	return node->slots + xas->xa_offset + 1;
}

/* The caller is in a read-side critical section, or holds the lock. */
__rust_helper void *rust_helper_xa_slot_entry(void __rcu **slot)
{
	return rcu_dereference_raw(*slot);
}

/* Unlike xas_retry(), this lets the entry of a reservation pass. */
__rust_helper bool rust_helper_xas_retry_entry(struct xa_state *xas,
					       const void *entry)
{
	return xa_is_retry(entry) && xas_retry(xas, entry);
}

__rust_helper int rust_helper_xas_error(const struct xa_state *xas)
{
	return xas_error(xas);
}

/* Whether @entry is neither NULL nor a pointer: the Rust side stores no other values. */
__rust_helper bool rust_helper_xa_is_special(const void *entry)
{
	return (unsigned long)entry & 3;
}

/* The entry of a reservation, which readers do not find. */
__rust_helper void *rust_helper_xa_zero_entry(void)
{
	return XA_ZERO_ENTRY;
}

__rust_helper bool rust_helper_xa_is_zero(const void *entry)
{
	return xa_is_zero(entry);
}

__rust_helper int rust_helper_xa_insert(struct xarray *xa, unsigned long index,
					void *entry, gfp_t gfp)
{
	/* The flags may be those for what the entry points to. */
	gfp &= GFP_KERNEL | GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN;
	return xa_insert(xa, index, entry, gfp);
}

__rust_helper void rust_helper_xa_release(struct xarray *xa,
					  unsigned long index)
{
	xa_release(xa, index);
}

__rust_helper void rust_helper_xas_cond_resched(void)
{
	cond_resched();
}
