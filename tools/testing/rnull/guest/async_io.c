// SPDX-License-Identifier: GPL-2.0
/*
 * Sends requests without waiting for their completion.
 *
 * usage: async_io reads DISK COUNT MILLISECONDS
 *        async_io polled DISK COUNT MILLISECONDS
 *        async_io fua DISK OFFSET BYTES
 *
 * `reads` sends COUNT reads of 4 KiB together, as many more after MILLISECONDS, and prints how many
 * ended with which result and the least time that a read took: "31 ok, 1 EIO, 200 ms".
 *
 * `polled` sends COUNT reads to polled queues, in four calls, polls for their completion only after
 * MILLISECONDS, and prints the results alone. A read must complete exactly once.
 *
 * `fua` writes zeros with FUA; unlike a synchronous write, no flush follows.
 */
#include <limits.h>
#include "polled.h"

/* The gap between two reads keeps them from being merged. */
enum { MOST = 64, SIZE = 4096, STEP = 2 * SIZE };

static struct io_uring ring;
static long sent[2 * MOST], least = LONG_MAX;
static int results[2 * MOST];
static bool ended[2 * MOST];

static void send_reads(int disk, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_read(sqe, disk, alloc_pages(SIZE), SIZE, (uint64_t)i * STEP);
		io_uring_sqe_set_data64(sqe, i);
		sent[i] = milliseconds();
	}
	if (submit_unpolled(&ring) != to - from)
		die("io_uring_enter: %s", verdict(-1));
}

/* reap: waits for a completion; false if none comes while none is in flight. */
static bool reap(unsigned int count, unsigned int in_flight)
{
	struct io_uring_cqe *cqe;
	long took;

	errno = -(in_flight ? io_uring_wait_cqe : io_uring_peek_cqe)(&ring, &cqe);
	if (errno == EAGAIN && !in_flight)
		return false;
	if (errno)
		die("io_uring_wait_cqe: %s", verdict(-1));
	if (cqe->user_data >= count || ended[cqe->user_data])
		die("read %llu has completed twice", cqe->user_data);
	took = milliseconds() - sent[cqe->user_data];
	least = took < least ? took : least;
	ended[cqe->user_data] = true;
	results[count - in_flight] = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return true;
}

static int by_value(const void *one, const void *other)
{
	return *(const int *)other - *(const int *)one;
}

static void reap_all(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		reap(count, count - i);
	if (reap(count, 0))
		die("a completion too many");
	qsort(results, count, sizeof(*results), by_value);
	for (unsigned int from = 0, to; from < count; from = to) {
		for (to = from; to < count && results[to] == results[from]; to++)
			;
		printf("%s%u ", from ? ", " : "", to - from);
		if (results[from] < 0)
			printf("%s", strerrorname_np(-results[from]));
		else if (results[from] == SIZE)
			printf("ok");
		else
			printf("of %d bytes", results[from]);
	}
}

static void reads(int disk, unsigned int count, long wait)
{
	send_reads(disk, 0, count);
	usleep(wait * 1000);
	send_reads(disk, count, 2 * count);
	reap_all(2 * count);
	printf(", %ld ms\n", least);
}

static void polled(int disk, unsigned int count, long wait)
{
	for (unsigned int part = 0; part < 4; part++)
		send_reads(disk, count * part / 4, count * (part + 1) / 4);
	usleep(wait * 1000);
	reap_all(count);
	puts("");
}

static void fua(int disk, uint64_t offset, size_t bytes)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct io_uring_cqe *cqe;

	io_uring_prep_write(sqe, disk, alloc_pages(bytes), bytes, offset);
	sqe->rw_flags = RWF_DSYNC;
	if (io_uring_submit_and_wait(&ring, 1) != 1 || io_uring_peek_cqe(&ring, &cqe))
		die("io_uring_submit_and_wait: %s", verdict(-1));
	errno = cqe->res < 0 ? -cqe->res : 0;
	puts(cqe->res == (int)bytes || cqe->res < 0 ? verdict(cqe->res) : "short");
}

int main(int count, char **words)
{
	const char *command = count == 5 ? words[1] : "";
	bool poll = !strcmp(command, "polled");
	long number = count == 5 ? atol(words[3]) : 0;
	int disk;

	if (!poll && strcmp(command, "reads") && strcmp(command, "fua"))
		die("usage: async_io reads|polled|fua DISK NUMBER NUMBER");
	disk = open_direct(words[2], O_RDWR);
	errno = -io_uring_queue_init(2 * MOST, &ring, poll ? IORING_SETUP_IOPOLL : 0);
	if (errno)
		die("io_uring_queue_init: %s", verdict(-1));
	if (!strcmp(command, "fua"))
		fua(disk, number, atol(words[4]));
	else if (number < 1 || number > MOST)
		die("1 to %d reads", MOST);
	else
		(poll ? polled : reads)(disk, number, atol(words[4]));
	return 0;
}
