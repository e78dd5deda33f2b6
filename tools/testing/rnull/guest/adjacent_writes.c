// SPDX-License-Identifier: GPL-2.0
/*
 * Lets several threads change blocks that lie beside each other in the same pages.
 *
 * usage: adjacent_writes DISK BLOCK MILLISECONDS [discard] [flush]
 * Each block belongs to one thread, which alone changes it, and finds in it what it left there, whatever the others do to
 * the page around it. Any thread may look at any block, and finds a whole one. With the word it discards, or flushes, too.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

/* Where a page has several blocks, it has one of each thread. The second half of them are where a store locks other pages. */
enum { THREADS = 4, BLOCKS = 32, APART = 1 << 20, LEAST = 500 };

static struct {
	const char *path;
	size_t block;
	bool discard, flush;
	atomic_bool stop;
	atomic_ulong changes;
} shared;

struct thread {
	pthread_t id;
	unsigned int number;
	int fd;
	uint64_t numbers, generation, *buffer, left[BLOCKS];
};

static uint64_t number(struct thread *t, uint64_t below)
{
	t->numbers ^= t->numbers << 13;
	t->numbers ^= t->numbers >> 7;
	t->numbers ^= t->numbers << 17;
	return t->numbers % below;
}

static off_t place(int block)
{
	size_t row = THREADS * shared.block < 4096 ? 4096 : THREADS * shared.block;
	int number = block / THREADS, half = BLOCKS / THREADS / 2;

	return number / half * APART + number % half * row + block % THREADS * shared.block;
}

static void look(struct thread *t, int block)
{
	size_t words = shared.block / sizeof(*t->buffer);
	const uint64_t *found = t->buffer;

	memset(t->buffer, 0xee, shared.block);
	if (pread(t->fd, t->buffer, shared.block, place(block)) != (ssize_t)shared.block)
		die("read of block %d: %s", block, verdict(-1));
	for (size_t i = 1; i < words; i++)
		if (found[i] != found[0])
			die("block %d: a mixture of %#lx, %#lx", block, found[0], found[i]);
	if (found[0] && (int)(found[0] & 0xff) != block)
		die("block %d: %#lx of another block", block, found[0]);
	if (block % THREADS == (int)t->number && found[0] != t->left[block])
		die("block %d: %#lx instead of %#lx", block, found[0], t->left[block]);
}

static void put(struct thread *t, int block, bool durable)
{
	struct iovec piece = { .iov_base = t->buffer, .iov_len = shared.block };
	uint64_t word = ++t->generation << 8 | block;

	for (size_t i = 0; i < shared.block / sizeof(word); i++)
		t->buffer[i] = word;
	if (pwritev2(t->fd, &piece, 1, place(block), durable ? RWF_DSYNC : 0) != (ssize_t)shared.block)
		die("write of block %d: %s", block, verdict(-1));
	t->left[block] = word;
}

static void discard(struct thread *t, int block)
{
	uint64_t range[] = { place(block), shared.block };

	if (ioctl(t->fd, BLKDISCARD, range))
		die("discard of block %d: %s", block, verdict(-1));
	t->left[block] = 0;
}

static void *neighbour(void *arg)
{
	struct thread *t = arg;

	while (!shared.stop) {
		int own = number(t, BLOCKS / THREADS) * THREADS + t->number;

		switch (number(t, 8)) {
		case 0:
		case 1:
			put(t, own, shared.flush && number(t, 2));
			break;
		case 2:
		case 3:
		case 4:
			if (shared.discard)
				discard(t, own);
			else
				put(t, own, false);
			break;
		case 5:
			own = number(t, BLOCKS);
			break;
		case 6:
			if (shared.flush && fsync(t->fd))
				die("flush: %s", verdict(-1));
			break;
		}
		look(t, own);
		shared.changes++;
	}
	for (int block = t->number; block < BLOCKS; block += THREADS)
		look(t, block);
	return NULL;
}

int main(int count, char **words)
{
	static struct thread threads[THREADS];
	struct timespec time = { 0 };

	if (count < 4)
		die("usage: adjacent_writes DISK BLOCK MILLISECONDS [discard] [flush]");
	shared.path = words[1];
	shared.block = atol(words[2]);
	time.tv_sec = atol(words[3]) / 1000;
	time.tv_nsec = atol(words[3]) % 1000 * 1000000;
	for (int i = 4; i < count; i++) {
		shared.discard |= !strcmp(words[i], "discard");
		shared.flush |= !strcmp(words[i], "flush");
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		struct thread *t = &threads[i];

		t->number = i;
		t->numbers = 88172645463325252ull + i;
		t->buffer = aligned_alloc(4096, shared.block < 4096 ? 4096 : shared.block);
		t->fd = open(shared.path, O_RDWR | O_DIRECT);
		if (t->fd < 0)
			die("open %s: %s", shared.path, verdict(-1));
		if (pthread_create(&t->id, NULL, neighbour, t))
			die("pthread_create");
	}
	/* Longer where the machine is too busy for the threads to meet. */
	for (int i = 0; i < 30 && (!i || shared.changes < LEAST); i++)
		nanosleep(&time, NULL);
	shared.stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	if (shared.changes < LEAST)
		die("only %lu changes", shared.changes);
	puts("ok");
	return 0;
}
