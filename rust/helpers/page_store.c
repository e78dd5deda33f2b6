// SPDX-License-Identifier: GPL-2.0
/* What a page store does to its pages in C: allocation, look-up, the word beside them. */

#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/xarray.h>

/* The Rust side leaves out the indices of a first node. */
static_assert(XA_CHUNK_SIZE <= 64);

__rust_helper bool rust_helper_page_store_in_task(void)
{
	return in_task();
}

__rust_helper bool rust_helper_page_store_irqs_disabled(void)
{
	return irqs_disabled();
}

/*
 * The same for a callback that is called with interrupts enabled, at less cost: what
 * Rust disables interrupts by is counted.
 */
__rust_helper bool rust_helper_page_store_irqs_off(void)
{
	return preempt_count() & HARDIRQ_DISABLE_MASK;
}

/*
 * Whether the kernel knows of nothing that keeps the caller from sleeping. Without
 * CONFIG_PREEMPT_COUNT it does not know of spinlocks, nor of read sections of RCU.
 */
__rust_helper bool rust_helper_page_store_may_sleep(void)
{
	return !preempt_count() && !irqs_disabled() && !rcu_preempt_depth();
}

__rust_helper gfp_t rust_helper_page_store_gfp(bool may_sleep)
{
	return may_sleep && rust_helper_page_store_may_sleep() ? GFP_NOIO :
								 GFP_NOWAIT;
}

__rust_helper struct page *rust_helper_page_store_alloc(bool zeroed,
							bool may_sleep)
{
	gfp_t gfp = rust_helper_page_store_gfp(may_sleep);

	if (zeroed)
		gfp |= __GFP_ZERO;
	return alloc_page(gfp | __GFP_HIGHMEM | __GFP_NOWARN);
}

__rust_helper void rust_helper_page_store_free(struct page *page)
{
	set_page_private(page, 0);
	__free_page(page);
}

/* Where a page that was taken out says which one was before it, if any. */
__rust_helper struct page **rust_helper_page_store_link(struct page *page)
{
	return (struct page **)&page->__folio_index;
}

/* The link is in no word that RCU or the readers of such a page use. */
static_assert(offsetofend(struct page, rcu_head) <=
	      offsetof(struct page, __folio_index));
static_assert(offsetofend(struct page, __folio_index) <=
	      offsetof(struct page, private));

/* What RCU knows a page by that was taken out. */
__rust_helper struct rcu_head *rust_helper_page_store_head(struct page *page)
{
	return &page->rcu_head;
}

__rust_helper struct page *rust_helper_page_store_of_head(struct rcu_head *head)
{
	return container_of(head, struct page, rcu_head);
}

/* Frees pages from @page on in as few steps as they go. */
__rust_helper void rust_helper_page_store_free_chain(struct page *page)
{
	struct page *pages[16];
	unsigned int count = 0;

	while (page) {
		struct page *next = *rust_helper_page_store_link(page);

		set_page_private(page, 0);
		pages[count++] = page;
		page = next;
		if (count == ARRAY_SIZE(pages) || !page) {
			release_pages(pages, count);
			count = 0;
		}
	}
}

__rust_helper unsigned long *rust_helper_page_store_word(struct page *page)
{
	return &page->private;
}

__rust_helper void *rust_helper_page_store_alloc_leaf(size_t size,
						      bool may_sleep)
{
	gfp_t gfp = rust_helper_page_store_gfp(may_sleep);

	return kmalloc(size, gfp | __GFP_NOWARN);
}

/*
 * Returns 1 if @leaf is in the array now, 0 if there is one already, else an
 * error. Memory for nodes is allocated without the lock.
 */
__rust_helper int rust_helper_page_store_insert(struct xarray *xa,
						unsigned long index, void *leaf,
						bool may_sleep)
{
	XA_STATE(xas, xa, index);
	bool stored;

	do {
		xas_lock(&xas);
		stored = !xas_load(&xas);
		if (stored)
			xas_store(&xas, leaf);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, rust_helper_page_store_gfp(may_sleep)));
	return xas_error(&xas) ?: stored;
}

/*
 * Finds the leaf with this index, in an RCU read section. None is at an index that
 * a node of the lowest level at the head would have, and none spans several: what is
 * not NULL above the lowest level is a node.
 */
__rust_helper void *rust_helper_page_store_find(const struct xarray *xa,
						unsigned long index)
{
	void *entry = rcu_dereference(xa->xa_head);
	struct xa_node *node = xa_to_node(entry);
	unsigned int slot;

	if (!entry || index >> node->shift >= XA_CHUNK_SIZE)
		return NULL;
	for (;;) {
		slot = (index >> node->shift) & XA_CHUNK_MASK;
		entry = rcu_dereference(node->slots[slot]);
		if (!entry || !node->shift)
			return entry;
		node = xa_to_node(entry);
	}
}

__rust_helper void rust_helper_page_store_resched(void)
{
	if (rust_helper_page_store_may_sleep())
		cond_resched();
}
