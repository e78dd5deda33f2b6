// SPDX-License-Identifier: GPL-2.0
/*
 * Sends requests without waiting for their ends.
 *
 * usage: async_io reads DISK COUNT MILLISECONDS
 *        async_io durable DISK OFFSET BYTES
 * The first sends COUNT reads of 4 KiB in a row, as many more after so many milliseconds, then prints how often they ended in
 * which way, with the least time that one took: "31 ok, 1 EIO, 200 ms". The second writes zeros with FUA; unlike a call that
 * waits, it has no flush after it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

/* Between two reads there is a gap, so that they are not made one. */
enum { MOST = 64, SIZE = 4096, STEP = 2 * SIZE };

static aio_context_t context;
static struct iocb blocks[2 * MOST];
static long begun[2 * MOST];

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct iocb block(int disk, unsigned int which, int what, uint64_t offset, size_t bytes)
{
	void *memory = aligned_alloc(SIZE, (bytes + SIZE - 1) / SIZE * SIZE);

	memset(memory, 0, bytes);
	return (struct iocb){
		.aio_data = which,
		.aio_lio_opcode = what,
		.aio_fildes = disk,
		.aio_buf = (uintptr_t)memory,
		.aio_nbytes = bytes,
		.aio_offset = offset,
	};
}

static void send(unsigned int from, unsigned int to)
{
	struct iocb *list[2 * MOST];

	for (unsigned int i = from; i < to; i++) {
		list[i] = &blocks[i];
		begun[i] = milliseconds();
	}
	if (syscall(SYS_io_submit, context, to - from, list + from) != to - from)
		die("io_submit: %s", verdict(-1));
}

static struct io_event await(void)
{
	struct io_event event;

	if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1)
		die("io_getevents: %s", verdict(-1));
	return event;
}

static void reads(int disk, unsigned int count, int gap)
{
	long least = -1;
	unsigned int good = 0, bad = 0;
	int error = 0;

	for (unsigned int i = 0; i < 2 * count; i++)
		blocks[i] = block(disk, i, IOCB_CMD_PREAD, (uint64_t)i * STEP, SIZE);
	send(0, count);
	poll(NULL, 0, gap);
	send(count, 2 * count);
	for (unsigned int i = 0; i < 2 * count; i++) {
		struct io_event event = await();
		long took = milliseconds() - begun[event.data];

		if (least < 0 || took < least)
			least = took;
		if (event.res == SIZE) {
			good++;
			continue;
		}
		bad++;
		error = -event.res;
	}
	printf("%u ok, ", good);
	if (bad)
		printf("%u %s, ", bad, strerrorname_np(error));
	printf("%ld ms\n", least);
}

static void durable(int disk, uint64_t offset, size_t bytes)
{
	long done;

	blocks[0] = block(disk, 0, IOCB_CMD_PWRITE, offset, bytes);
	blocks[0].aio_rw_flags = RWF_DSYNC;
	send(0, 1);
	done = await().res;
	if (done < 0)
		errno = -done;
	puts(done == (long)bytes || done < 0 ? verdict(done) : "short");
}

int main(int count, char **words)
{
	int disk = count == 5 ? open(words[2], O_RDWR | O_DIRECT) : -1;

	if (count != 5)
		die("usage: async_io reads|durable DISK NUMBER NUMBER");
	if (disk < 0)
		die("open %s: %s", words[2], verdict(-1));
	if (syscall(SYS_io_setup, 2 * MOST, &context))
		die("io_setup: %s", verdict(-1));
	if (!strcmp(words[1], "durable"))
		durable(disk, atol(words[3]), atol(words[4]));
	else if (atoi(words[3]) > 0 && atoi(words[3]) <= MOST)
		reads(disk, atoi(words[3]), atoi(words[4]));
	else
		die("1 to %u reads", MOST);
	return 0;
}
