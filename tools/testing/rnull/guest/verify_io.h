/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that move blocks from, to a disk.
 *
 * What they find must be what was last written to a block, or what was being written when the disk went.
 */
#ifndef RNULL_VERIFY_IO_H
#define RNULL_VERIFY_IO_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

enum { BLOCK = 4096, BLOCKS = 64, THREADS = 4, MOVED = 8, PATIENCE = 60 };

/* How the things that are done look to a thread. */
static struct {
	char disk[256];
	bool goes; /* the disk may go at any time */
	atomic_bool stop;
	atomic_ulong epoch; /* counts the disks that began without data */
	atomic_int open;
} shared;

static struct thread {
	pthread_t id;
	atomic_ulong moved;
	unsigned int number;
	uint64_t numbers, generation, epoch;
	uint64_t sure[BLOCKS], maybe[BLOCKS];
} threads[THREADS];

static uint64_t number(struct thread *t, uint64_t below)
{
	t->numbers ^= t->numbers << 13;
	t->numbers ^= t->numbers >> 7;
	t->numbers ^= t->numbers << 17;
	return t->numbers % below;
}

/* What every word of a block holds: nothing, or whose it is with the number of the write. */
static uint64_t word(struct thread *t, int block, uint64_t generation)
{
	return generation ? generation << 16 | (uint64_t)t->number << 8 | block : 0;
}

static void look(struct thread *t, int block, const uint64_t *found)
{
	uint64_t sure = word(t, block, t->sure[block]), maybe = word(t, block, t->maybe[block]);

	for (int i = 1; i < BLOCK / 8; i++)
		if (found[i] != found[0])
			die("thread %u, block %d: a mixture of %#lx, %#lx", t->number, block,
			    found[0], found[i]);
	if (found[0] != sure && found[0] != maybe)
		die("thread %u, block %d: %#lx instead of %#lx or %#lx", t->number, block, found[0],
		    sure, maybe);
	/* Now that it was seen, it must stay. */
	t->sure[block] = found[0] >> 16;
	t->maybe[block] = t->sure[block];
}

/* move: one read or write of a block; false when the disk has gone. */
static bool move(struct thread *t, int fd, uint64_t *buffer)
{
	int block = number(t, BLOCKS);
	off_t offset = ((off_t)t->number * BLOCKS + block) * BLOCK;
	bool writing = number(t, 2);
	ssize_t done;

	if (writing) {
		t->maybe[block] = ++t->generation;
		for (int i = 0; i < BLOCK / 8; i++)
			buffer[i] = word(t, block, t->generation);
		done = pwrite(fd, buffer, BLOCK, offset);
	} else {
		done = pread(fd, buffer, BLOCK, offset);
	}
	if (done != BLOCK) {
		if (!shared.goes)
			die("thread %u: %s of block %d: %zd, %s", t->number,
			    writing ? "write" : "read", block, done, verdict(done));
		return false;
	}
	if (writing)
		t->sure[block] = t->generation;
	else
		look(t, block, buffer);
	t->moved++;
	return true;
}

static void *mover(void *arg)
{
	struct thread *t = arg;
	uint64_t *buffer = aligned_alloc(BLOCK, BLOCK);

	t->numbers = 88172645463325252ull + t->number;
	while (!shared.stop) {
		int fd = open(shared.disk, O_RDWR | O_DIRECT);

		if (fd < 0) {
			if (!shared.goes)
				die("open %s: %s", shared.disk, verdict(-1));
			usleep(1000);
			continue;
		}
		shared.open++;
		if (t->epoch != shared.epoch) {
			t->epoch = shared.epoch;
			memset(t->sure, 0, sizeof(t->sure));
			memset(t->maybe, 0, sizeof(t->maybe));
		}
		while (!shared.stop && move(t, fd, buffer))
			;
		close(fd);
		shared.open--;
	}
	return NULL;
}

static void start(bool goes)
{
	shared.goes = goes;
	shared.stop = false;
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i].number = i;
		if (pthread_create(&threads[i].id, NULL, mover, &threads[i]))
			die("pthread_create");
	}
}

/* stop: returns how many blocks were moved since the start. */
static unsigned long stop(void)
{
	unsigned long moved = 0;

	shared.stop = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].id, NULL);
		moved += threads[i].moved;
	}
	return moved;
}

/* Waits until every thread has moved some blocks more. */
static void under_load(void)
{
	time_t end = time(NULL) + PATIENCE;

	for (int i = 0; i < THREADS; i++)
		for (unsigned long from = threads[i].moved; threads[i].moved < from + MOVED;) {
			if (time(NULL) > end)
				die("thread %d has moved nothing for %d s", i, PATIENCE);
			usleep(200);
		}
}

#endif
