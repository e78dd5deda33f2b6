// SPDX-License-Identifier: GPL-2.0
/*
 * Appends to a zone, which no system call does: "DISK SECTOR SECTORS BYTE [COUNT]", written to the
 * parameter `append`, appends as many sectors of that byte to the zone that begins at SECTOR, COUNT
 * times. The parameter then reads as the position that the last were written to, or as a negative error
 * number.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/module.h>

static char answer[32] = "nothing was appended";

static long long append_once(struct block_device *disk, struct page *page, sector_t sector,
			     unsigned int sectors)
{
	unsigned int pages = DIV_ROUND_UP(sectors << SECTOR_SHIFT, PAGE_SIZE);
	long long result;
	struct bio *bio;

	if (pages > BIO_MAX_VECS)
		return -ENOMEM;
	bio = bio_alloc(disk, pages, REQ_OP_ZONE_APPEND | REQ_SYNC, GFP_KERNEL);
	bio->bi_iter.bi_sector = sector;
	while (pages--) {
		unsigned int len = min(sectors << SECTOR_SHIFT, (unsigned int)PAGE_SIZE);

		__bio_add_page(bio, page, len, 0);
		sectors -= len >> SECTOR_SHIFT;
	}
	result = submit_bio_wait(bio);
	if (!result)
		result = bio->bi_iter.bi_sector;
	bio_put(bio);
	return result;
}

static long long append(const char *disk, sector_t sector, unsigned int sectors, int byte,
			unsigned int count)
{
	struct file *file = bdev_file_open_by_path(disk, BLK_OPEN_READ | BLK_OPEN_WRITE, NULL, NULL);
	long long result = -ENOMEM;
	struct page *page;

	if (IS_ERR(file))
		return PTR_ERR(file);
	page = alloc_page(GFP_KERNEL);
	if (!page)
		goto out;
	memset(page_address(page), byte, PAGE_SIZE);
	do {
		result = append_once(file_bdev(file), page, sector, sectors);
	} while (result >= 0 && --count);
	__free_page(page);
out:
	bdev_fput(file);
	return result;
}

static int set_append(const char *text, const struct kernel_param *param)
{
	unsigned int sectors, byte, count = 1;
	unsigned long long sector;
	char disk[32];

	if (sscanf(text, "%31s %llu %u %u %u", disk, &sector, &sectors, &byte, &count) < 4 || !sectors ||
	    !count)
		return -EINVAL;
	snprintf(answer, sizeof(answer), "%lld", append(disk, sector, sectors, byte, count));
	return 0;
}

static int get_append(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%s\n", answer);
}

static const struct kernel_param_ops append_ops = {
	.set = set_append,
	.get = get_append,
};
module_param_cb(append, &append_ops, NULL, 0600);

MODULE_DESCRIPTION("Appends to zones, for tests");
MODULE_LICENSE("GPL");
