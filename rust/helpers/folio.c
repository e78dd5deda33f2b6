// SPDX-License-Identifier: GPL-2.0
/* Helpers for folios: allocation, copies, freeing after a grace period. */

#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/kcsan-checks.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>

/* Returns NULL for an order that the page allocator would warn about. */
__rust_helper struct folio *rust_helper_folio_alloc(gfp_t gfp,
						    unsigned int order)
{
	if (order > MAX_PAGE_ORDER)
		return NULL;
	return folio_alloc(gfp, order);
}

__rust_helper void rust_helper_folio_get(struct folio *folio)
{
	folio_get(folio);
}

__rust_helper void rust_helper_folio_put(struct folio *folio)
{
	folio_put(folio);
}

__rust_helper unsigned int rust_helper_folio_order(const struct folio *folio)
{
	return folio_order(folio);
}

__rust_helper void **rust_helper_folio_private(struct folio *folio)
{
	return &folio->private;
}

/*
 * Where pages are mapped one by one, the functions below see to that themselves: some
 * of C's map the first page only under CONFIG_DEBUG_KMAP_LOCAL_FORCE_MAP, or map the
 * page behind the end to access none of its bytes.
 */

/* The bytes of a folio may change while they are copied. */
__rust_helper void rust_helper_folio_read(char *to, struct folio *folio,
					  size_t offset, size_t len)
{
	if (IS_ENABLED(CONFIG_KMAP_LOCAL) && !len)
		return;
	kcsan_disable_current();
	memcpy_from_folio(to, folio, offset, len);
	kcsan_enable_current();
}

__rust_helper void rust_helper_folio_write(struct folio *folio, size_t offset,
					   const char *from, size_t len)
{
	if (IS_ENABLED(CONFIG_KMAP_LOCAL) && !len)
		return;
	kcsan_disable_current();
	memcpy_to_folio(folio, offset, from, len);
	kcsan_enable_current();
}

__rust_helper void rust_helper_folio_copy_range(struct folio *to, size_t to_at,
						struct folio *from,
						size_t from_at, size_t len)
{
	kcsan_disable_current();
	while (len) {
		char *dst = kmap_local_folio(to, to_at);
		const char *src = kmap_local_folio(from, from_at);
		size_t chunk = len;

		if (IS_ENABLED(CONFIG_KMAP_LOCAL)) {
			chunk = min(chunk, PAGE_SIZE - offset_in_page(to_at));
			chunk = min(chunk, PAGE_SIZE - offset_in_page(from_at));
		}
		memcpy(dst, src, chunk);
		kunmap_local(src);
		kunmap_local(dst);
		to_at += chunk;
		from_at += chunk;
		len -= chunk;
	}
	kcsan_enable_current();
}

__rust_helper void rust_helper_folio_zero_bytes(struct folio *folio,
						size_t offset, size_t len)
{
	kcsan_disable_current();
	while (len) {
		char *to = kmap_local_folio(folio, offset);
		size_t chunk = len;

		if (IS_ENABLED(CONFIG_KMAP_LOCAL))
			chunk = min(chunk, PAGE_SIZE - offset_in_page(offset));
		memset(to, 0, chunk);
		kunmap_local(to);
		offset += chunk;
		len -= chunk;
	}
	flush_dcache_folio(folio);
	kcsan_enable_current();
}

/* What links a folio to the next one of a batch, and what RCU links it by. */
__rust_helper struct folio **rust_helper_folio_link(struct folio *folio)
{
	return (struct folio **)&folio->index;
}

__rust_helper struct rcu_head *rust_helper_folio_rcu_head(struct folio *folio)
{
	return &folio->page.rcu_head;
}

/* Readers still use the private word while the folio waits for a grace period. */
static_assert(offsetofend(struct page, rcu_head) <=
	      offsetof(struct folio, index));
static_assert(offsetofend(struct folio, index) <=
	      offsetof(struct folio, private));

/* Puts the folios of a batch, the first of which has @head. */
__rust_helper void rust_helper_folio_put_batch(struct rcu_head *head)
{
	struct page *page = container_of(head, struct page, rcu_head);
	struct folio *folio = (struct folio *)page;

	while (folio) {
		struct folio *next = *rust_helper_folio_link(folio);

		folio_put(folio);
		folio = next;
	}
}
