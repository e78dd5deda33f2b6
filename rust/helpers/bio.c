// SPDX-License-Identifier: GPL-2.0
/* Helpers for bios. The first ones map pages to copy their contents. */

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/part_stat.h>

#ifdef CONFIG_BLOCK

__rust_helper void rust_helper_memcpy_from_page(char *dst, struct page *src,
						size_t src_at, size_t len)
{
	memcpy_from_page(dst, src, src_at, len);
}

__rust_helper void rust_helper_memcpy_to_page(struct page *dst, size_t dst_at,
					      const char *src, size_t len)
{
	memcpy_to_page(dst, dst_at, src, len);
}

__rust_helper void rust_helper_memset_page(struct page *page, size_t at,
					   int byte, size_t len)
{
	memset_page(page, at, byte, len);
}

__rust_helper void rust_helper_flush_dcache_page(struct page *page)
{
	flush_dcache_page(page);
}

__rust_helper void rust_helper_memset_bytes(char *at, int byte, size_t len)
{
	memset(at, byte, len);
}

/*
 * Maps the bytes from offset @at on in contiguous pages, the first of which is @page;
 * reduces @len where pages can be mapped only one at a time.
 */
__rust_helper void *rust_helper_bio_map(struct page *page, size_t at,
					size_t *len)
{
#if defined(CONFIG_KMAP_LOCAL) || defined(ARCH_HAS_FLUSH_ON_KUNMAP) || \
	defined(CONFIG_KASAN_SW_TAGS) || defined(CONFIG_KASAN_HW_TAGS)
	*len = min(*len, PAGE_SIZE - offset_in_page(at));
	return kmap_local_page(page + (at >> PAGE_SHIFT)) + offset_in_page(at);
#else
	/* All pages have their addresses one after the other, and no tags. */
	return kmap_local_page(page) + at;
#endif
}

__rust_helper void rust_helper_bio_unmap(void *address)
{
	kunmap_local(address);
}

/* Flushes the data cache, so that all mappings of the pages show the same data. */
__rust_helper void rust_helper_bio_flush(struct page *page, size_t at,
					 size_t len)
{
	size_t end = at + len;

	for (at = round_down(at, PAGE_SIZE); at < end; at += PAGE_SIZE)
		flush_dcache_page(page + (at >> PAGE_SHIFT));
}

__rust_helper void rust_helper_blk_get_usage(struct request_queue *q)
{
	percpu_ref_get(&q->q_usage_counter);
}

/* Counts a flush before the data as well. */
__rust_helper void rust_helper_bio_account_end(struct bio *bio, unsigned long start)
{
	struct block_device *part = bio->bi_bdev;

	bio_end_io_acct(bio, start);
	if (bio->bi_opf & REQ_PREFLUSH) {
		part_stat_lock();
		part_stat_inc(part, ios[STAT_FLUSH]);
		part_stat_add(part, nsecs[STAT_FLUSH],
			      jiffies_to_nsecs(jiffies - start));
		part_stat_unlock();
	}
}

#endif /* CONFIG_BLOCK */
