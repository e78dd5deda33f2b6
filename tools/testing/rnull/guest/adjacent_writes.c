// SPDX-License-Identifier: GPL-2.0
/*
 * Several threads change adjacent blocks in the same pages.
 *
 * usage: adjacent_writes DISK BLOCK MILLISECONDS [flush]
 * Each block belongs to one thread. Only that thread writes or discards it, and it must find what
 * it left there, whatever the others do to the same page. Any thread may read any block, and must
 * find it undivided. With `flush`, threads also flush and write with FUA.
 */
#include "race.h"

/*
 * Where a page has several blocks, each thread has one of them. The second half of the blocks are
 * where a store locks other pages.
 */
enum { BLOCKS = 32, APART = 1 << 20, LEAST = 500 };

static bool flushes;
static atomic_ulong changes;

static off_t place(int block)
{
	size_t row = RACERS * race.bytes < 4096 ? 4096 : RACERS * race.bytes;
	int number = block / RACERS, half = BLOCKS / RACERS / 2;

	return number / half * APART + number % half * row + block % RACERS * race.bytes;
}

/* check: reads a block; `left` is what must be there, if not NULL. */
static void check(int fd, uint64_t *buffer, int block, const uint64_t *left)
{
	memset(buffer, 0xee, race.bytes);
	transfer(fd, buffer, place(block), false, 0);
	for (size_t i = 1; i < race.bytes / sizeof(*buffer); i++)
		if (buffer[i] != buffer[0])
			die("block %d: a mixture of %#lx, %#lx", block, buffer[0], buffer[i]);
	if (buffer[0] && (int)(buffer[0] & 0xff) != block)
		die("block %d: %#lx of another block", block, buffer[0]);
	if (left && buffer[0] != *left)
		die("block %d: %#lx instead of %#lx", block, buffer[0], *left);
}

static void *owner(void *arg)
{
	uint64_t random = (uintptr_t)arg, generation = 0, left[BLOCKS] = { 0 };
	uint64_t *buffer = alloc_pages(race.bytes);
	int fd = open_direct(race.path, O_RDWR), number = (uintptr_t)arg;

	for (; !race.stop; changes++) {
		int own = random_below(&random, BLOCKS / RACERS) * RACERS + number, other;

		switch (random_below(&random, 8)) {
		case 0 ... 1:
			left[own] = ++generation << 8 | own;
			for (size_t i = 0; i < race.bytes / sizeof(*buffer); i++)
				buffer[i] = left[own];
			transfer(fd, buffer, place(own), true,
				 flushes && random_below(&random, 2) ? RWF_DSYNC : 0);
			break;
		case 2 ... 4:
			discard(fd, place(own));
			left[own] = 0;
			break;
		case 5:
			other = random_below(&random, BLOCKS);
			check(fd, buffer, other, other % RACERS == number ? &left[other] : NULL);
			continue;
		case 6:
			if (flushes)
				flush(fd);
			break;
		}
		check(fd, buffer, own, &left[own]);
	}
	for (int block = number; block < BLOCKS; block += RACERS)
		check(fd, buffer, block, &left[block]);
	return NULL;
}

static bool enough(void)
{
	return changes >= LEAST;
}

int main(int count, char **words)
{
	static void *(*const bodies[RACERS])(void *) = { owner, owner, owner, owner };

	flushes = count > 4 && !strcmp(words[4], "flush");
	run_race(count, words, bodies, enough);
	if (!enough())
		die("only %lu changes", changes);
	puts("ok");
	return 0;
}
