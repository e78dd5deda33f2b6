/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that use a disk at the same time.
 */
#ifndef RNULL_RACE_H
#define RNULL_RACE_H

#include "util.h"

enum { RACERS = 4 };

static struct {
	const char *path;
	size_t bytes;
	atomic_bool stop;
} race;

/* transfer: reads or writes `race.bytes` bytes, or ends the program. */
static inline void transfer(int fd, void *buffer, off_t offset, bool write, int flags)
{
	struct iovec data = { buffer, race.bytes };
	ssize_t done = write ? pwritev2(fd, &data, 1, offset, flags) :
			       preadv2(fd, &data, 1, offset, flags);

	if (done != (ssize_t)race.bytes)
		die("%s at %ld: %zd, %s", write ? "write" : "read", offset, done, verdict(done));
}

static inline void discard(int fd, off_t offset)
{
	uint64_t range[] = { offset, race.bytes };

	if (ioctl(fd, BLKDISCARD, range))
		die("discard at %ld: %s", offset, verdict(-1));
}

static inline void flush(int fd)
{
	if (fsync(fd))
		die("flush: %s", verdict(-1));
}

/*
 * run_race: PROGRAM DISK BYTES MILLISECONDS, on the command line.
 *
 * Runs the threads for that long, and up to sixty times as long while `enough` says no: on a busy
 * machine it takes some time until the threads meet. Their argument is their number.
 */
static inline void run_race(int count, char **words, void *(*const bodies[RACERS])(void *),
			    bool (*enough)(void))
{
	pthread_t threads[RACERS];

	if (count < 4)
		die("usage: %s DISK BYTES MILLISECONDS", words[0]);
	race.path = words[1];
	race.bytes = atol(words[2]);
	for (uintptr_t i = 0; i < RACERS; i++)
		threads[i] = start_thread(bodies[i], (void *)i);
	for (int i = 0; i < 60 && (!i || !enough()); i++)
		usleep(atol(words[3]) * 1000);
	race.stop = true;
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
}

#endif
