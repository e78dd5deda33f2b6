// SPDX-License-Identifier: GPL-2.0
/* What a page store does to its pages in C: allocation, look-up, the lock in page->private. */

#include <linux/bit_spinlock.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/xarray.h>

/* In page->private: held while bytes of the unit are copied; the unit is no longer in the store. */
#define PAGE_STORE_LOCKED	0
#define PAGE_STORE_REMOVED	1

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

/* Returns what was there: NULL if @page is now in the array, else a page or an error. */
__rust_helper void *rust_helper_page_store_insert(struct xarray *xa,
						  unsigned long index,
						  struct page *page,
						  bool may_sleep)
{
	return xa_cmpxchg(xa, index, NULL, page,
			  may_sleep ? GFP_NOIO : GFP_NOWAIT);
}

/* Starts a walk, which lasts at most as long as an RCU read section. */
__rust_helper void rust_helper_page_store_walk(struct xa_state *xas,
					       struct xarray *xa)
{
	*xas = (struct xa_state)__XA_STATE(xa, 0, 0, 0);
}

/* A neighbour of the last page is found without a descent from the root. */
__rust_helper struct page *rust_helper_page_store_find(struct xa_state *xas,
						       unsigned long index)
{
	void *entry;

	if (!xas_not_node(xas->xa_node) && index == xas->xa_index + 1) {
		entry = xas_next(xas);
	} else {
		xas_set(xas, index);
		entry = xas_load(xas);
	}
	while (xas_retry(xas, entry))
		entry = xas_load(xas);
	return entry;
}

/* Returns whether the unit of @page is still in the store; the lock is held in either case. */
__rust_helper bool rust_helper_page_store_lock(struct page *page)
{
	bit_spin_lock(PAGE_STORE_LOCKED, &page->private);
	return !test_bit(PAGE_STORE_REMOVED, &page->private);
}

/* The holder of the lock is the only one to change other bits, so no locked operation is needed. */
__rust_helper void rust_helper_page_store_unlock(struct page *page)
{
	__bit_spin_unlock(PAGE_STORE_LOCKED, &page->private);
}

__rust_helper void rust_helper_page_store_set_removed(struct page *page)
{
	__set_bit(PAGE_STORE_REMOVED, &page->private);
}

__rust_helper void rust_helper_page_store_resched(void)
{
	cond_resched();
}
