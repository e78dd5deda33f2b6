// SPDX-License-Identifier: GPL-2.0
/*
 * Uses the zones of a disk, with direct I/O.
 *
 * usage: zone report DISK SECTOR COUNT            start+length/capacity@pointer:type:condition of each
 *        zone open|close|finish|reset DISK SECTOR SECTORS
 *        zone write DISK SECTOR SECTORS BYTE      fills them with a byte
 *        zone read DISK SECTOR SECTORS            byte*sectors, for each run of equal ones
 *        zone random DISK OPERATIONS SEED [DATA]  the same operations for each disk, and their results;
 *                                                 with DATA, also what is read
 */
#include "util.h"
#include <linux/blkzoned.h>

enum { SECTOR = 512, ZONES = 64, MOST = 2048 };

static struct {
	struct blk_zone_report head;
	struct blk_zone zones[ZONES];
} report;

/* ask: asks for zones; returns the number, or -1. */
static int ask(int fd, uint64_t sector, unsigned int count)
{
	memset(&report, 0, sizeof(report));
	report.head.sector = sector;
	report.head.nr_zones = count < ZONES ? count : ZONES;
	return ioctl(fd, BLKREPORTZONE, &report) < 0 ? -1 : (int)report.head.nr_zones;
}

static void print_zones(int count)
{
	if (count < 0) {
		printf(" %s", verdict(-1));
		return;
	}
	for (int i = 0; i < count; i++) {
		struct blk_zone *zone = &report.zones[i];

		printf(" %llu+%llu/%llu@%lld:%u:%x", zone->start, zone->len, zone->capacity,
		       (long long)zone->wp, zone->type, zone->cond);
	}
}

static const char *manage(int fd, const char *what, uint64_t sector, uint64_t sectors)
{
	struct blk_zone_range range = { sector, sectors };
	unsigned long number = !strcmp(what, "open")   ? BLKOPENZONE
			       : !strcmp(what, "close")	 ? BLKCLOSEZONE
			       : !strcmp(what, "finish") ? BLKFINISHZONE
			       : !strcmp(what, "reset")	 ? BLKRESETZONE
							 : 0;

	if (!number)
		die("there is no operation %s", what);
	return verdict(ioctl(fd, number, &range));
}

static const char *fill(int fd, unsigned char *buffer, uint64_t sector, size_t sectors, int byte)
{
	ssize_t done;

	memset(buffer, byte, sectors * SECTOR);
	done = pwrite(fd, buffer, sectors * SECTOR, sector * SECTOR);
	if (done >= 0 && done != (ssize_t)(sectors * SECTOR))
		return "short";
	return verdict(done);
}

/* print_data: reads sectors; prints what is in them. */
static void print_data(int fd, unsigned char *buffer, uint64_t sector, size_t sectors)
{
	size_t run = 0;

	memset(buffer, 0x5a, sectors * SECTOR);
	if (pread(fd, buffer, sectors * SECTOR, sector * SECTOR) < 0) {
		printf(" %s", verdict(-1));
		return;
	}
	for (size_t i = 0; i < sectors; i++) {
		unsigned char *at = buffer + i * SECTOR;

		for (int j = 1; j < SECTOR; j++)
			if (at[j] != at[0])
				die(" sector %zu has several values", i);
		run++;
		if (i + 1 == sectors || at[SECTOR] != at[0]) {
			printf(" %02x*%zu", at[0], run);
			run = 0;
		}
	}
}

static void random_operations(int fd, unsigned char *buffer, int operations, uint64_t seed,
			      bool data)
{
	static const char *const names[] = { "open", "close", "finish", "reset" };
	uint64_t random = seed;
	int count = ask(fd, 0, ZONES);

	if (count <= 0)
		die("no zones: %s", verdict(count));
	for (int i = 0; i < operations; i++) {
		struct blk_zone zone;
		uint64_t what = random_below(&random, 16), at;
		size_t sectors = (1 + random_below(&random, 16)) * 8;

		count = ask(fd, 0, ZONES);
		zone = report.zones[random_below(&random, count)];
		printf("%d zone %llu", i, zone.start / zone.len);
		at = zone.start + random_below(&random, zone.len / 8) * 8;
		if (what < 7) {
			/* Mostly at the write pointer, and sometimes up to the end of the zone. */
			if (what < 6 && zone.type == BLK_ZONE_TYPE_SEQWRITE_REQ &&
			    zone.wp < zone.start + zone.capacity) {
				at = zone.wp;
				if (what == 0)
					sectors = zone.start + zone.capacity - at;
			}
			if (at + sectors > zone.start + zone.len)
				sectors = zone.start + zone.len - at;
			if (sectors > MOST)
				sectors = MOST;
			printf(" write %llu+%zu %s", (unsigned long long)at, sectors,
			       fill(fd, buffer, at, sectors, 1 + i % 200));
		} else if (what < 15) {
			const char *name = names[random_below(&random, 4)];

			printf(" %s %s", name, manage(fd, name, zone.start, zone.len));
		} else if (random_below(&random, 8) == 0) {
			uint64_t end = report.zones[count - 1].start + report.zones[count - 1].len;

			printf(" reset all %s", manage(fd, "reset", 0, end));
		}
		if (data) {
			printf(" data");
			print_data(fd, buffer, zone.start, zone.len < MOST ? zone.len : MOST);
		}
		print_zones(ask(fd, 0, ZONES));
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	const char *what = argv[1];
	uint64_t sector, number;
	unsigned char *buffer;
	int fd;

	if (argc < 5)
		die("see the first lines of zone.c");
	sector = strtoull(argv[3], NULL, 0);
	number = strtoull(argv[4], NULL, 0);
	fd = open_direct(argv[2], O_RDWR);
	buffer = alloc_pages(MOST * SECTOR);
	if (!strcmp(what, "random")) {
		random_operations(fd, buffer, sector, number, argc > 5);
		return 0;
	}
	if (!strcmp(what, "report")) {
		print_zones(ask(fd, sector, number));
		putchar('\n');
		return 0;
	}
	if ((!strcmp(what, "read") || !strcmp(what, "write")) && number > MOST)
		die("too many sectors");
	if (!strcmp(what, "read")) {
		print_data(fd, buffer, sector, number);
		putchar('\n');
	} else if (!strcmp(what, "write") && argc > 5) {
		puts(fill(fd, buffer, sector, number, atoi(argv[5])));
	} else {
		puts(manage(fd, what, sector, number));
	}
}
