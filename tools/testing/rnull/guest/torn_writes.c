// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a block of a disk by several threads at once, for others to read.
 *
 * torn_writes DISK BLOCK MILLISECONDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "util.h"
#include "direct.h"

static struct {
	const char *path;
	size_t block;
	atomic_bool stop, torn;
	unsigned long reads, changes;
	pthread_mutex_t lock;
} overlap = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *overlap_writer(void *arg)
{
	unsigned char *buffer = memory(overlap.block);
	int fd = open_disk(overlap.path, O_WRONLY);

	for (unsigned char byte = (uintptr_t)arg; !overlap.stop; byte += 2) {
		memset(buffer, byte, overlap.block);
		if (pwrite(fd, buffer, overlap.block, 0) != (ssize_t)overlap.block)
			die("write: %s", verdict(-1));
	}
	return NULL;
}

static void *overlap_reader(void *arg)
{
	unsigned char *buffer = memory(overlap.block), last = 0;
	int fd = open_disk(overlap.path, O_RDONLY);

	(void)arg;
	while (!overlap.stop) {
		if (pread(fd, buffer, overlap.block, 0) != (ssize_t)overlap.block)
			die("read: %s", verdict(-1));
		if (memcmp(buffer, buffer + 1, overlap.block - 1))
			overlap.torn = true;
		pthread_mutex_lock(&overlap.lock);
		overlap.reads++;
		overlap.changes += buffer[0] != last;
		pthread_mutex_unlock(&overlap.lock);
		last = buffer[0];
	}
	return NULL;
}

static unsigned long overlap_changes(void)
{
	unsigned long changes;

	pthread_mutex_lock(&overlap.lock);
	changes = overlap.changes;
	pthread_mutex_unlock(&overlap.lock);
	return changes;
}

/* Two writers on one logical block; no reader may see a mixture of two writes. */
static int overlapping(const char *path, size_t block, long milliseconds)
{
	struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
	pthread_t threads[4];

	overlap.path = path;
	overlap.block = block;
	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, i < 2 ? overlap_writer : overlap_reader,
				   (void *)i))
			die("pthread_create");
	/* Longer where the machine is too busy for the threads to meet. */
	for (int i = 0; i < 30 && overlap_changes() < 10; i++)
		nanosleep(&time, NULL);
	overlap.stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (overlap.torn)
		die("a reader saw a block with parts of two writes (%lu reads)", overlap.reads);
	if (overlap.changes < 10)
		die("only %lu changes in %lu reads: writers did not overlap readers",
		    overlap.changes, overlap.reads);
	puts("ok");
	return 0;
}

int main(int count, char **words)
{
	if (count != 4)
		die("usage: torn_writes DISK BLOCK MILLISECONDS");
	return overlapping(words[1], strtoull(words[2], NULL, 0), strtol(words[3], NULL, 0));
}
