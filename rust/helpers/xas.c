// SPDX-License-Identifier: GPL-2.0
/* Helpers for operations on an XArray by an xa_state. */

#include <linux/gfp.h>
#include <linux/sched.h>
#include <linux/xarray.h>

/*
 * Finds what xas_load() would, in an array whose entries have one index each: there are
 * no siblings, and no values above the leaves. Sets @node as xas_load() sets xa_node. It
 * takes a third of the instructions.
 */
__rust_helper void *rust_helper_xa_walk(const struct xarray *xa,
					unsigned long index,
					struct xa_node **node)
{
	void *entry = xa_head(xa);
	unsigned long offset = index;

	*node = NULL;
	/* There are no values: of what is no pointer, only nodes are beyond XA_ZERO_ENTRY. */
	if (unlikely(!((unsigned long)entry & 2) || entry <= XA_ZERO_ENTRY)) {
		if (!index)
			return entry;
		*node = XAS_BOUNDS;
		return NULL;
	}
	*node = xa_to_node(entry);
	offset >>= (*node)->shift;
	if (unlikely(offset > XA_CHUNK_MASK)) {
		*node = XAS_BOUNDS;
		return NULL;
	}
	for (;;) {
		entry = xa_entry(xa, *node, offset & XA_CHUNK_MASK);
		/* Above the leaves there are nodes, NULL, and XA_RETRY_ENTRY. */
		if (!(*node)->shift || unlikely(entry <= XA_ZERO_ENTRY))
			return entry;
		*node = xa_to_node(entry);
		offset = index >> (*node)->shift;
	}
}

/* Makes a state that has walked to @node. */
__rust_helper void rust_helper_xas_init(struct xa_state *xas,
					struct xarray *xa, unsigned long index,
					struct xa_node *node)
{
	*xas = (struct xa_state)__XA_STATE(xa, index, 0, 0);
	xas->xa_node = node;
	if (node && node != XAS_BOUNDS)
		xas->xa_offset = index >> node->shift & XA_CHUNK_MASK;
}

/*
 * Returns the slot that a walk to @node has found the entry in, and sets @count to the
 * number of slots from there on, which are for consecutive indices. Beyond the array it is
 * a slot that never has an entry.
 */
__rust_helper void __rcu **rust_helper_xa_slots(struct xarray *xa,
						unsigned long index,
						struct xa_node *node,
						size_t *count)
{
	static void __rcu *const no_entry;
	unsigned long offset;

	*count = 1;
	if (!node)
		return &xa->xa_head;
	if (node == XAS_BOUNDS)
		return (void __rcu **)&no_entry;
	offset = index >> node->shift & XA_CHUNK_MASK;
	if (!node->shift)
		*count = XA_CHUNK_SIZE - offset;
	return node->slots + offset;
}

/* The caller is in a read-side critical section, or holds the lock. */
__rust_helper void *rust_helper_xa_slot_entry(void __rcu **slot)
{
	return rcu_dereference_raw(*slot);
}

__rust_helper bool rust_helper_xa_is_retry(const void *entry)
{
	return xa_is_retry(entry);
}

__rust_helper int rust_helper_xas_error(const struct xa_state *xas)
{
	/* Neither a node nor its absence has this bit. */
	if (likely(!((unsigned long)xas->xa_node & 2)))
		return 0;
	return xas_error(xas);
}

/* Whether @entry is neither NULL nor a pointer: the Rust side stores no other values. */
__rust_helper bool rust_helper_xa_is_special(const void *entry)
{
	return (unsigned long)entry & 3;
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
