// SPDX-License-Identifier: GPL-2.0
/*
 * Sends reads whose ends are polled for, but only after a while.
 *
 * usage: poll DISK COUNT MILLISECONDS
 * Sends COUNT reads of 4 KiB in four calls, looks after them only so many milliseconds later, then prints how often they ended in which
 * way, "16 ok". A read that ends twice, or never, is an error.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "answer.h"

#define MOST 64
#define SIZE 4096u
/* Between two reads there is a gap, so that they are not made one. */
#define STEP (2 * SIZE)

static struct {
	int fd;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail, sq_mask, cq_mask;
} ring;

static char *map(size_t length, int fd, off_t offset)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, offset);

	if (at == MAP_FAILED)
		die("mmap: %s", verdict(-1));
	return at;
}

static void set_up(void)
{
	struct io_uring_params with = { .flags = IORING_SETUP_IOPOLL };
	char *sq, *cq;

	ring.fd = syscall(SYS_io_uring_setup, MOST, &with);
	if (ring.fd < 0)
		die("io_uring_setup: %s", verdict(-1));
	sq = map(with.sq_off.array + with.sq_entries * sizeof(*ring.sq_array), ring.fd, IORING_OFF_SQ_RING);
	cq = map(with.cq_off.cqes + with.cq_entries * sizeof(*ring.cqes), ring.fd, IORING_OFF_CQ_RING);
	ring.sqes = (void *)map(with.sq_entries * sizeof(*ring.sqes), ring.fd, IORING_OFF_SQES);
	ring.sq_tail = (void *)(sq + with.sq_off.tail);
	ring.sq_array = (void *)(sq + with.sq_off.array);
	ring.sq_mask = *(unsigned int *)(sq + with.sq_off.ring_mask);
	ring.cqes = (void *)(cq + with.cq_off.cqes);
	ring.cq_head = (void *)(cq + with.cq_off.head);
	ring.cq_tail = (void *)(cq + with.cq_off.tail);
	ring.cq_mask = *(unsigned int *)(cq + with.cq_off.ring_mask);
}

static void send_reads(int disk, unsigned int count)
{
	char *memory = map(count * SIZE, -1, 0);

	for (unsigned int i = 0; i < count; i++) {
		unsigned int tail = *ring.sq_tail, slot = tail & ring.sq_mask;

		ring.sqes[slot] = (struct io_uring_sqe){
			.opcode = IORING_OP_READ,
			.fd = disk,
			.off = i * STEP,
			.addr = (uintptr_t)memory + i * SIZE,
			.len = SIZE,
			.user_data = i,
		};
		ring.sq_array[slot] = slot;
		__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	}
	for (unsigned int part = 0; part < 4; part++) {
		unsigned int now = count * (part + 1) / 4 - count * part / 4;

		if (now && syscall(SYS_io_uring_enter, ring.fd, now, 0, 0, NULL, 0) != now)
			die("io_uring_enter: %s", verdict(-1));
	}
}

/* Polls until `count` reads have ended, and once more: no end may be left over. */
static void end_all(unsigned int count, int *results)
{
	unsigned int ends[MOST] = { 0 }, ended = 0, more = 1;

	while (ended < count || more--) {
		if (syscall(SYS_io_uring_enter, ring.fd, 0, ended < count, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			die("io_uring_enter: %s", verdict(-1));
		while (*ring.cq_head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE)) {
			const struct io_uring_cqe *end = &ring.cqes[*ring.cq_head & ring.cq_mask];

			if (end->user_data >= count || ends[end->user_data]++)
				die("read %llu has ended twice", (unsigned long long)end->user_data);
			results[ended++] = end->res;
			__atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
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
		die("usage: poll DISK COUNT MILLISECONDS, with 1 to %u reads", MOST);
	disk = open(argv[1], O_RDONLY | O_DIRECT);
	if (disk < 0)
		die("open %s: %s", argv[1], verdict(-1));
	set_up();
	send_reads(disk, count);
	poll(NULL, 0, atoi(argv[3]));
	end_all(count, results);
	print(results, count);
	return 0;
}
