// SPDX-License-Identifier: GPL-2.0
/* The copying of bytes from or to a page, which C inlines. */

#include <linux/highmem.h>

__rust_helper void rust_helper_memcpy_page(struct page *dst, size_t dst_at,
					   struct page *src, size_t src_at,
					   size_t len)
{
	memcpy_page(dst, dst_at, src, src_at, len);
}

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
