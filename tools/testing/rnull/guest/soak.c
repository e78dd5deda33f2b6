// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats one change to a driver while several threads do verified I/O on its disk.
 *
 * usage: soak queues|power|rmdir|cpus ROUNDS DIRECTORY     a directory in configfs that need not exist
 *        soak unload ROUNDS FILE MODULE DISK PARAMETERS
 *
 * Before each thing that is done, every thread has moved some blocks since the last; what a block holds afterwards must be
 * what was last written to it, or what was being written when the disk went.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"

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

/* put: an attribute below a directory must take a text. */
static void put(const char *directory, const char *attribute, long value)
{
	char path[512], text[32];
	int fd, length = snprintf(text, sizeof(text), "%ld", value);

	snprintf(path, sizeof(path), "%s/%s", directory, attribute);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, length) != length)
		die("%s <- %s: %s", path, text, verdict(-1));
	close(fd);
}

/* make: a device that is on, with the settings of a round. */
static void make(const char *directory, long round)
{
	if (mkdir(directory, 0755))
		die("mkdir: %s", verdict(-1));
	put(directory, "size", 16);
	put(directory, "memory_backed", 1);
	put(directory, "blocksize", BLOCK);
	put(directory, "irqmode", round % 3);
	put(directory, "submit_queues", 1 + round % sysconf(_SC_NPROCESSORS_ONLN));
	put(directory, "power", 1);
}

static void change_queues(const char *directory, long round)
{
	under_load();
	put(directory, "submit_queues", 1 + (round * 7 + 1) % sysconf(_SC_NPROCESSORS_ONLN));
}

static void cycle_power(const char *directory, long round)
{
	under_load();
	put(directory, "power", 0);
	put(directory, "irqmode", round % 3);
	put(directory, "power", 1);
}

static void make_again(const char *directory, long round)
{
	under_load();
	if (rmdir(directory))
		die("rmdir: %s", verdict(-1));
	shared.epoch++;
	make(directory, round);
}

static void unplug(const char *directory, long round)
{
	char path[64];
	long cpu = 1 + round % (sysconf(_SC_NPROCESSORS_CONF) - 1);

	(void)directory;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld", cpu);
	under_load();
	put(path, "online", 0);
	under_load();
	put(path, "online", 1);
}

static const struct {
	const char *name;
	void (*round)(const char *directory, long round);
	bool goes;
} kinds[] = {
	{ "queues", change_queues, false },
	{ "power", cycle_power, true },
	{ "rmdir", make_again, true },
	{ "cpus", unplug, false },
};

/* Each round has its threads: they close the disk together, then at once the module goes. */
static unsigned long unload(long rounds, const char *path, const char *module, const char *parameters)
{
	unsigned long moved = 0;

	for (long round = 0; round < rounds; round++) {
		int file = open(path, O_RDONLY | O_CLOEXEC);
		char words[256];

		snprintf(words, sizeof(words), "%s irqmode=%ld", parameters, round % 3);
		if (syscall(SYS_finit_module, file, words, 0))
			die("round %ld: load: %s", round, verdict(-1));
		close(file);
		shared.epoch++;
		for (int i = 0; i < THREADS; i++)
			threads[i].moved = 0;
		start(false);
		under_load();
		shared.stop = true;
		while (shared.open)
			;
		if (syscall(SYS_delete_module, module, O_NONBLOCK))
			die("round %ld: unload: %s", round, verdict(-1));
		moved += stop();
	}
	return moved;
}

int main(int count, char **words)
{
	long rounds = count > 2 ? atol(words[2]) : 0;
	unsigned long moved;

	if (count == 7 && !strcmp(words[1], "unload")) {
		snprintf(shared.disk, sizeof(shared.disk), "%s", words[5]);
		printf("%ld rounds, %lu blocks\n", rounds, unload(rounds, words[3], words[4], words[6]));
		return 0;
	}
	for (size_t i = 0; count == 4 && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(words[1], kinds[i].name))
			continue;
		snprintf(shared.disk, sizeof(shared.disk), "/dev/%s", strrchr(words[3], '/') + 1);
		/* A third of the rounds on a device of each kind of completion. */
		for (long round = 0, mode = 0; mode < 3; mode++) {
			shared.epoch++;
			make(words[3], mode);
			start(kinds[i].goes);
			for (; round < rounds * (mode + 1) / 3; round++)
				kinds[i].round(words[3], round);
			under_load();
			moved = stop();
			rmdir(words[3]);
		}
		printf("%ld rounds, %lu blocks\n", rounds, moved);
		return 0;
	}
	die("soak: no such thing to do, or the wrong words to say how");
}
