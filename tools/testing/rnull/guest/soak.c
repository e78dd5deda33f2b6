// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats one change to a driver while several threads do verified I/O on its disk.
 *
 * usage: soak queues|stopped|power|rmdir|cpus ROUNDS DIRECTORY     a directory in configfs
 *        soak unload ROUNDS FILE MODULE DISK PARAMETERS
 *
 * Between two changes every thread transfers some blocks. Each thread has blocks of its own and
 * must find in them what it last wrote, or what it was writing when the disk was removed.
 */
#include "util.h"

enum { BLOCK = 4096, BLOCKS = 64, THREADS = 4, TRANSFERS = 8, PATIENCE = 60 };

static struct {
	char disk[256];
	bool removed; /* the disk may be removed at any time */
	long mbps; /* the limit on its bandwidth */
	atomic_bool stop;
	atomic_ulong epoch; /* counts the disks that began without data */
	atomic_int open;
} shared;

static struct thread {
	pthread_t id;
	atomic_ulong transfers;
	unsigned int number;
	uint64_t random, generation, epoch;
	uint64_t written[BLOCKS], unsure[BLOCKS]; /* the second may be there instead */
} threads[THREADS];

/* Each word of a block: zero, or the number of the write with thread and block. */
static uint64_t word(struct thread *t, int block, uint64_t generation)
{
	return generation ? generation << 16 | (uint64_t)t->number << 8 | block : 0;
}

static void check(struct thread *t, int block, const uint64_t *found)
{
	uint64_t written = word(t, block, t->written[block]);
	uint64_t unsure = word(t, block, t->unsure[block]);

	for (int i = 1; i < BLOCK / 8; i++)
		if (found[i] != found[0])
			die("thread %u, block %d: a mixture of %#lx, %#lx", t->number, block,
			    found[0], found[i]);
	if (found[0] != written && found[0] != unsure)
		die("thread %u, block %d: %#lx instead of %#lx or %#lx", t->number, block,
		    found[0], written, unsure);
	/* What was read once must stay. */
	t->written[block] = found[0] >> 16;
	t->unsure[block] = t->written[block];
}

/* transfer: reads or writes a block; false when the disk is no longer there. */
static bool transfer(struct thread *t, int fd, uint64_t *buffer)
{
	int block = random_below(&t->random, BLOCKS);
	off_t offset = ((off_t)t->number * BLOCKS + block) * BLOCK;
	bool writing = random_below(&t->random, 2);
	ssize_t done;

	if (writing) {
		t->unsure[block] = ++t->generation;
		for (int i = 0; i < BLOCK / 8; i++)
			buffer[i] = word(t, block, t->generation);
	}
	done = writing ? pwrite(fd, buffer, BLOCK, offset) : pread(fd, buffer, BLOCK, offset);
	if (done != BLOCK) {
		if (!shared.removed)
			die("thread %u: %s of block %d: %zd, %s", t->number,
			    writing ? "write" : "read", block, done, verdict(done));
		return false;
	}
	if (writing)
		t->written[block] = t->generation;
	else
		check(t, block, buffer);
	t->transfers++;
	return true;
}

static void *body(void *arg)
{
	struct thread *t = arg;
	uint64_t *buffer = alloc_pages(BLOCK);

	while (!shared.stop) {
		int fd = open(shared.disk, O_RDWR | O_DIRECT);

		if (fd < 0) {
			if (!shared.removed)
				die("open %s: %s", shared.disk, verdict(-1));
			usleep(1000);
			continue;
		}
		shared.open++;
		if (t->epoch != shared.epoch) {
			t->epoch = shared.epoch;
			memset(t->written, 0, sizeof(t->written));
			memset(t->unsure, 0, sizeof(t->unsure));
		}
		while (!shared.stop && transfer(t, fd, buffer))
			;
		close(fd);
		shared.open--;
	}
	return NULL;
}

static void start(void)
{
	shared.stop = false;
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i].number = i;
		threads[i].random = i;
		threads[i].id = start_thread(body, &threads[i]);
	}
}

/* stop: ends the threads; returns how many blocks they have transferred since the last time. */
static unsigned long stop(void)
{
	unsigned long transfers = 0;

	shared.stop = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].id, NULL);
		transfers += atomic_exchange(&threads[i].transfers, 0);
	}
	return transfers;
}

/* under_load: waits until every thread has transferred some more blocks. */
static void under_load(void)
{
	time_t end = time(NULL) + PATIENCE;

	for (int i = 0; i < THREADS; i++)
		for (unsigned long target = threads[i].transfers + TRANSFERS;
		     threads[i].transfers < target; usleep(200))
			if (time(NULL) > end)
				die("thread %d has transferred nothing for %d s", i, PATIENCE);
}

/* put: writes a number to an attribute. */
static void put(const char *directory, const char *attribute, long value)
{
	char path[512], text[32];

	snprintf(path, sizeof(path), "%s/%s", directory, attribute);
	snprintf(text, sizeof(text), "%ld", value);
	if (write_file(path, text) < 0)
		die("%s <- %s: %s", path, text, verdict(-1));
}

/* make: creates a device without data and powers it on. */
static void make(const char *directory, long round)
{
	if (mkdir(directory, 0755))
		die("mkdir: %s", verdict(-1));
	shared.epoch++;
	put(directory, "size", 16);
	put(directory, "memory_backed", 1);
	put(directory, "blocksize", BLOCK);
	put(directory, "irqmode", round % 3);
	put(directory, "mbps", shared.mbps);
	put(directory, "submit_queues", 1 + round % sysconf(_SC_NPROCESSORS_ONLN));
	put(directory, "poll_queues", 1 + round % 2);
	put(directory, "power", 1);
}

static void change_queues(const char *directory, long round)
{
	put(directory, "submit_queues", 1 + (round * 7 + 1) % sysconf(_SC_NPROCESSORS_ONLN));
	under_load();
	/* From one or two to none, then up. */
	put(directory, "poll_queues", round % 3);
}

static void cycle_power(const char *directory, long round)
{
	put(directory, "power", 0);
	put(directory, "irqmode", round % 3);
	put(directory, "power", 1);
}

static void remake(const char *directory, long round)
{
	if (rmdir(directory))
		die("rmdir: %s", verdict(-1));
	make(directory, round);
}

static void unplug_cpu(const char *directory, long round)
{
	char path[64];

	(void)directory;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld",
		 1 + round % (sysconf(_SC_NPROCESSORS_CONF) - 1));
	put(path, "online", 0);
	under_load();
	put(path, "online", 1);
}

static const struct change {
	const char *name;
	void (*make)(const char *directory, long round);
	bool removed;
	long mbps;
} changes[] = {
	{ "queues", change_queues, false, 0 },
	/* So low a limit keeps the queues stopped most of the time. */
	{ "stopped", change_queues, false, 2 },
	{ "power", cycle_power, true, 0 },
	{ "rmdir", remake, true, 0 },
	{ "cpus", unplug_cpu, false, 0 },
};

/* A third of the rounds is on a device of each kind of completion. */
static unsigned long soak(const struct change *change, long rounds, const char *directory)
{
	unsigned long transfers = 0;

	snprintf(shared.disk, sizeof(shared.disk), "/dev/%s", strrchr(directory, '/') + 1);
	shared.removed = change->removed;
	shared.mbps = change->mbps;
	for (long round = 0, mode = 0; mode < 3; mode++) {
		make(directory, mode);
		start();
		for (; round < rounds * (mode + 1) / 3; round++) {
			under_load();
			change->make(directory, round);
		}
		under_load();
		transfers += stop();
		rmdir(directory);
	}
	return transfers;
}

/* In each round all threads close the disk, and the module is unloaded at once. */
static unsigned long unload(long rounds, char **words)
{
	const char *file = words[0], *module = words[1], *parameters = words[3];
	unsigned long transfers = 0;

	snprintf(shared.disk, sizeof(shared.disk), "%s", words[2]);
	for (long round = 0; round < rounds; round++) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);
		char text[256];

		snprintf(text, sizeof(text), "%s irqmode=%ld", parameters, round % 3);
		if (syscall(SYS_finit_module, fd, text, 0))
			die("round %ld: load: %s", round, verdict(-1));
		close(fd);
		shared.epoch++;
		start();
		under_load();
		shared.stop = true;
		while (shared.open)
			;
		if (syscall(SYS_delete_module, module, O_NONBLOCK))
			die("round %ld: unload: %s", round, verdict(-1));
		transfers += stop();
	}
	return transfers;
}

int main(int count, char **words)
{
	long rounds = count > 2 ? atol(words[2]) : 0, transfers = -1;

	if (count == 7 && !strcmp(words[1], "unload"))
		transfers = unload(rounds, words + 3);
	for (size_t i = 0; count == 4 && i < sizeof(changes) / sizeof(*changes); i++)
		if (!strcmp(words[1], changes[i].name))
			transfers = soak(&changes[i], rounds, words[3]);
	if (transfers < 0)
		die("usage: soak CHANGE ROUNDS ...; see its source");
	printf("%ld rounds, %ld blocks\n", rounds, transfers);
	return 0;
}
