// SPDX-License-Identifier: GPL-2.0
/*
 * Sends reads whose ends are polled for, but only after a while.
 *
 * usage: polled_reads DISK COUNT MILLISECONDS
 * Sends COUNT reads of 4 KiB in four calls, looks after them only so many milliseconds later, then prints how often they ended in which
 * way, "16 ok". A read that ends twice, or never, is an error.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include "util.h"
#include "ring.h"

#define MOST 64
#define SIZE 4096u
/* Between two reads there is a gap, so that they are not made one. */
#define STEP (2 * SIZE)

static struct ring ring;

static void send_reads(int disk, unsigned int count)
{
	char *memory = ring_map(count * SIZE, -1, 0);

	if (!memory)
		die("mmap: %s", verdict(-1));
	for (unsigned int i = 0; i < count; i++) {
		struct io_uring_sqe sqe = {
			.opcode = IORING_OP_READ,
			.fd = disk,
			.off = i * STEP,
			.addr = (uintptr_t)memory + i * SIZE,
			.len = SIZE,
			.user_data = i,
		};

		ring_push(&ring, &sqe);
	}
	for (unsigned int part = 0; part < 4; part++) {
		unsigned int now = count * (part + 1) / 4 - count * part / 4;

		if (now && ring_enter(&ring, now, 0, 0) != (int)now)
			die("io_uring_enter: %s", verdict(-1));
	}
}

/* Polls until `count` reads have ended, and once more: no end may be left over. */
static void end_all(unsigned int count, int *results)
{
	unsigned int ends[MOST] = { 0 }, ended = 0, more = 1;
	struct io_uring_cqe end;

	while (ended < count || more--) {
		if (ring_enter(&ring, 0, ended < count, IORING_ENTER_GETEVENTS) < 0)
			die("io_uring_enter: %s", verdict(-1));
		while (ring_pop(&ring, &end)) {
			if (end.user_data >= count || ends[end.user_data]++)
				die("read %llu has ended twice", (unsigned long long)end.user_data);
			results[ended++] = end.res;
		}
	}
}

static int by_value(const void *one, const void *other)
{
	return *(const int *)other - *(const int *)one;
}

static void print(int *results, unsigned int count)
{
	qsort(results, count, sizeof(*results), by_value);
	for (unsigned int from = 0, to; from < count; from = to) {
		for (to = from; to < count && results[to] == results[from]; to++)
			;
		if (results[from] == SIZE)
			printf("%u ok\n", to - from);
		else if (results[from] < 0)
			printf("%u %s\n", to - from, strerrorname_np(-results[from]));
		else
			printf("%u of %d bytes\n", to - from, results[from]);
	}
}

int main(int argc, char **argv)
{
	unsigned int count = argc == 4 ? atoi(argv[2]) : 0;
	int results[MOST], disk;

	if (!count || count > MOST)
		die("usage: polled_reads DISK COUNT MILLISECONDS, with 1 to %u reads", MOST);
	disk = open(argv[1], O_RDONLY | O_DIRECT);
	if (disk < 0)
		die("open %s: %s", argv[1], verdict(-1));
	if (!ring_set_up(&ring, MOST))
		die("io_uring_setup: %s", verdict(-1));
	send_reads(disk, count);
	poll(NULL, 0, atoi(argv[3]));
	end_all(count, results);
	print(results, count);
	return 0;
}
