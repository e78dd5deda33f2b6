// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats one change to a driver while several threads do verified I/O on its disk.
 *
 * usage: soak queues|stopped|power|rmdir|cpus ROUNDS DIRECTORY     a directory in configfs that need not exist
 *        soak unload ROUNDS FILE MODULE DISK PARAMETERS
 *
 * Before each thing that is done, every thread has moved some blocks since the last.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"
#include "verify_io.h"

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

/* The limit on the bandwidth of a device, if there is one. */
static long mbps;

/* make: a device that is on, with the settings of a round. */
static void make(const char *directory, long round)
{
	if (mkdir(directory, 0755))
		die("mkdir: %s", verdict(-1));
	put(directory, "size", 16);
	put(directory, "memory_backed", 1);
	put(directory, "blocksize", BLOCK);
	put(directory, "irqmode", round % 3);
	put(directory, "mbps", mbps);
	put(directory, "submit_queues", 1 + round % sysconf(_SC_NPROCESSORS_ONLN));
	put(directory, "poll_queues", 1 + round % 2);
	put(directory, "power", 1);
}

static void change_queues(const char *directory, long round)
{
	under_load();
	put(directory, "submit_queues", 1 + (round * 7 + 1) % sysconf(_SC_NPROCESSORS_ONLN));
	under_load();
	/* From one or two to none, then up. */
	put(directory, "poll_queues", round % 3);
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
	long mbps;
} kinds[] = {
	{ "queues", change_queues, false, 0 },
	/* With so little, the queues are stopped most of the time. */
	{ "stopped", change_queues, false, 2 },
	{ "power", cycle_power, true, 0 },
	{ "rmdir", make_again, true, 0 },
	{ "cpus", unplug, false, 0 },
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
		mbps = kinds[i].mbps;
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
