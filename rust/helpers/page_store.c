// SPDX-License-Identifier: GPL-2.0
/* What a page store does to its pages in C: allocation, look-up, the word beside them. */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/xarray.h>

/* The Rust side counts on the size of a node. */
static_assert(XA_CHUNK_SIZE == (IS_ENABLED(CONFIG_BASE_SMALL) ? 16 : 64));

__rust_helper struct page *rust_helper_page_store_alloc(bool zeroed,
							bool may_sleep)
{
	gfp_t gfp = may_sleep ? GFP_NOIO : GFP_NOWAIT;

	if (zeroed)
		gfp |= __GFP_ZERO;
	return alloc_page(gfp | __GFP_HIGHMEM | __GFP_NOWARN);
}

__rust_helper void rust_helper_page_store_free(struct page *page)
{
	set_page_private(page, 0);
	__free_page(page);
}

__rust_helper unsigned long *rust_helper_page_store_word(struct page *page)
{
	return &page->private;
}

/*
 * Returns 1 if @page is in the array now, 0 if there is one already, else an error. The state of
 * the look-up serves to store, too; memory for a node is allocated without the lock.
 */
__rust_helper int rust_helper_page_store_insert(struct xarray *xa,
						unsigned long index,
						struct page *page,
						unsigned long *count,
						bool may_sleep)
{
	XA_STATE(xas, xa, index);
	bool stored;

	do {
		xas_lock(&xas);
		stored = !xas_load(&xas);
		if (stored) {
			xas_store(&xas, page);
			stored = !xas_error(&xas);
		}
		if (stored)
			WRITE_ONCE(*count, *count + 1);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, may_sleep ? GFP_NOIO : GFP_NOWAIT));
	return xas_error(&xas) ?: stored;
}

/* The node from which the page with this index hangs, or would hang, if there is one. */
__rust_helper struct xa_node *
rust_helper_page_store_node(const struct xarray *xa, unsigned long index)
{
	void *entry = rcu_dereference_raw(xa->xa_head);
	struct xa_node *node;

	if (!xa_is_node(entry))
		return NULL;
	node = xa_to_node(entry);
	if (index >> node->shift >= XA_CHUNK_SIZE)
		return NULL;
	while (node->shift) {
		entry = rcu_dereference_raw(
			node->slots[(index >> node->shift) & XA_CHUNK_MASK]);
		if (!xa_is_node(entry))
			return NULL;
		node = xa_to_node(entry);
	}
	return node;
}

__rust_helper struct page *
rust_helper_page_store_slot(const struct xa_node *node, unsigned long slot)
{
	return node ? rcu_dereference_raw(node->slots[slot]) : NULL;
}

__rust_helper void rust_helper_page_store_destroy(struct xarray *xa)
{
	unsigned long index;
	struct page *page;

	xa_for_each(xa, index, page) {
		rust_helper_page_store_free(page);
		cond_resched();
	}
	xa_destroy(xa);
}

__rust_helper void rust_helper_page_store_resched(void)
{
	cond_resched();
}
