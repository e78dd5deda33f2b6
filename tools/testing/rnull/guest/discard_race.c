// SPDX-License-Identifier: GPL-2.0
/*
 * Discards what was just written, while others read it or flush.
 *
 * usage: discard_race DISK BYTES MILLISECONDS
 * What was discarded reads as zeros, however it is on its way from a cache to what is behind it. What was written again is
 * never seen as it was before that: each word of the disk has the number of its write, and readers know the least that
 * may be there.
 */
#define _GNU_SOURCE
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "util.h"
#include "direct.h"

enum { LEAST = 10 };

static struct {
	const char *path;
	size_t bytes;
	atomic_bool stop;
	/* What is there has this number, or a larger one, or none. */
	atomic_ulong least;
	atomic_ulong rounds, reads, seen, flushes;
} gone;

static void transfer(int fd, uint64_t *buffer, bool writing)
{
	ssize_t done = writing ? pwrite(fd, buffer, gone.bytes, 0) : pread(fd, buffer, gone.bytes, 0);

	if (done != (ssize_t)gone.bytes)
		die("%s: %s", writing ? "write" : "read", verdict(-1));
}

static void *writer(void *arg)
{
	uint64_t range[] = { 0, gone.bytes }, *buffer = memory(gone.bytes), number = 0;
	size_t words = gone.bytes / sizeof(*buffer);
	int fd = open_disk(gone.path, O_RDWR);

	(void)arg;
	while (!gone.stop) {
		/* Once for what is behind a cache, as far as flushes come by, once for the cache. */
		for (int i = 0; i < 2; i++) {
			number++;
			for (size_t word = 0; word < words; word++)
				buffer[word] = number;
			transfer(fd, buffer, true);
		}
		gone.least = number;
		if (ioctl(fd, BLKDISCARD, range))
			die("discard: %s", verdict(-1));
		gone.least = number + 1;
		transfer(fd, buffer, false);
		for (size_t word = 0; word < words; word++)
			if (buffer[word])
				die("byte %zu is of write %lu, which was discarded", word * sizeof(*buffer), buffer[word]);
		gone.rounds++;
	}
	return NULL;
}

static void *reader(void *arg)
{
	uint64_t *buffer = memory(gone.bytes), least;
	size_t words = gone.bytes / sizeof(*buffer);
	int fd = open_disk(gone.path, O_RDONLY);

	(void)arg;
	while (!gone.stop) {
		least = gone.least;
		transfer(fd, buffer, false);
		for (size_t word = 0; word < words; word++)
			if (buffer[word] && buffer[word] < least)
				die("byte %zu is of write %lu, after write %lu", word * sizeof(*buffer), buffer[word], least);
		gone.reads++;
		gone.seen += buffer[0] != 0;
	}
	return NULL;
}

static void *flusher(void *arg)
{
	int fd = open_disk(gone.path, O_RDWR);

	(void)arg;
	while (!gone.stop) {
		if (fsync(fd))
			die("flush: %s", verdict(-1));
		gone.flushes++;
	}
	return NULL;
}

static bool enough(void)
{
	return gone.rounds >= LEAST && gone.reads >= LEAST && gone.seen && gone.flushes >= LEAST;
}

int main(int count, char **words)
{
	void *(*const all[])(void *) = { writer, reader, flusher, flusher };
	pthread_t threads[4];
	struct timespec time = { 0 };

	if (count != 4)
		die("usage: discard_race DISK BYTES MILLISECONDS");
	gone.path = words[1];
	gone.bytes = atol(words[2]);
	time.tv_sec = atol(words[3]) / 1000;
	time.tv_nsec = atol(words[3]) % 1000 * 1000000;
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, all[i], NULL))
			die("pthread_create");
	/* Longer where the machine is too busy for the threads to meet. */
	for (int i = 0; i < 60 && (!i || !enough()); i++)
		nanosleep(&time, NULL);
	gone.stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (!enough())
		die("only %lu discards, %lu reads, %lu of them of data, %lu flushes", gone.rounds, gone.reads, gone.seen,
		    gone.flushes);
	puts("ok");
	return 0;
}
