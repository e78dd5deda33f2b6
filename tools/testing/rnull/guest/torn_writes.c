// SPDX-License-Identifier: GPL-2.0
/*
 * Two threads write the same logical block while two others read it.
 *
 * usage: torn_writes DISK BLOCK MILLISECONDS
 * No reader may see parts of two writes.
 */
#include "race.h"

enum { LEAST = 10 };

static atomic_ulong reads, changes;

static void *writer(void *arg)
{
	unsigned char *buffer = alloc_pages(race.bytes);
	int fd = open_direct(race.path, O_WRONLY);

	for (unsigned char byte = (uintptr_t)arg; !race.stop; byte += 2) {
		memset(buffer, byte, race.bytes);
		transfer(fd, buffer, 0, true, 0);
	}
	return NULL;
}

static void *reader(void *arg)
{
	unsigned char *buffer = alloc_pages(race.bytes), last = 0;
	int fd = open_direct(race.path, O_RDONLY);

	(void)arg;
	while (!race.stop) {
		transfer(fd, buffer, 0, false, 0);
		reads++;
		if (memcmp(buffer, buffer + 1, race.bytes - 1))
			die("a block has parts of two writes, after %lu reads", reads);
		changes += buffer[0] != last;
		last = buffer[0];
	}
	return NULL;
}

static bool enough(void)
{
	return changes >= LEAST;
}

int main(int count, char **words)
{
	static void *(*const bodies[RACERS])(void *) = { writer, writer, reader, reader };

	run_race(count, words, bodies, enough);
	if (!enough())
		die("only %lu changes in %lu reads", changes, reads);
	puts("ok");
	return 0;
}
