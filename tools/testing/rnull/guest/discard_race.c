// SPDX-License-Identifier: GPL-2.0
/*
 * One thread discards what it has just written, while others read it or flush.
 *
 * usage: discard_race DISK BYTES MILLISECONDS
 * Discarded data reads as zeros, even if it was on its way from a cache to the store. Data that was
 * written again is never seen in its old state: each word of the disk has the number of its write,
 * and readers know the least number that may be there.
 */
#include "race.h"

enum { LEAST = 10 };

/* A word of the disk has the number `oldest`, a larger one, or none. */
static atomic_ulong oldest, rounds, reads, seen, flushes;

static void *writer(void *arg)
{
	size_t words = race.bytes / sizeof(uint64_t);
	uint64_t *buffer = alloc_pages(race.bytes), number = 0;
	int fd = open_direct(race.path, O_RDWR);

	(void)arg;
	while (!race.stop) {
		/* The first write may reach the store, by a flush; the second is for the cache. */
		for (int i = 0; i < 2; i++) {
			number++;
			for (size_t word = 0; word < words; word++)
				buffer[word] = number;
			transfer(fd, buffer, 0, true, 0);
		}
		oldest = number;
		discard(fd, 0);
		oldest = number + 1;
		transfer(fd, buffer, 0, false, 0);
		for (size_t word = 0; word < words; word++)
			if (buffer[word])
				die("word %zu is of write %lu, which was discarded", word,
				    buffer[word]);
		rounds++;
	}
	return NULL;
}

static void *reader(void *arg)
{
	uint64_t *buffer = alloc_pages(race.bytes), least;
	int fd = open_direct(race.path, O_RDONLY);

	(void)arg;
	while (!race.stop) {
		least = oldest;
		transfer(fd, buffer, 0, false, 0);
		for (size_t word = 0; word < race.bytes / sizeof(*buffer); word++)
			if (buffer[word] && buffer[word] < least)
				die("word %zu is of write %lu, after write %lu", word, buffer[word],
				    least);
		reads++;
		seen += buffer[0] != 0;
	}
	return NULL;
}

static void *flusher(void *arg)
{
	int fd = open_direct(race.path, O_RDWR);

	(void)arg;
	for (; !race.stop; flushes++)
		flush(fd);
	return NULL;
}

static bool enough(void)
{
	return rounds >= LEAST && reads >= LEAST && seen && flushes >= LEAST;
}

int main(int count, char **words)
{
	static void *(*const bodies[RACERS])(void *) = { writer, reader, flusher, flusher };

	run_race(count, words, bodies, enough);
	if (!enough())
		die("only %lu discards, %lu reads, %lu of them of data, %lu flushes", rounds, reads,
		    seen, flushes);
	puts("ok");
	return 0;
}
