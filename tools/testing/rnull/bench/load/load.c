// SPDX-License-Identifier: GPL-2.0
/*
 * Does a fixed number of I/Os on a block device, always the same ones, between two markers for the counting plugin.
 *
 * usage: load NAME DEVICE [key=value...]
 *	engine=psync|uring|discard	op=read|write	bs=BYTES
 *	batch=N		io_uring: so many at once		poll=1		io_uring: poll for completions
 *	count=N		I/Os of each job in the region		warm=N		before it, also of each job
 *	start=BYTES span=BYTES	the range of the device		order=random|sequential
 *	jobs=N		processes, each on its own CPU, with its own part of the range
 *	fill=1		write all of the range first, so that memory-backed devices have their pages
 *	settle=MS	pause before the warm-up, 50 unless told	clock=1		also print what time the region took
 *
 * Prints "region NAME ios=N bs=N jobs=N" after the region: the n-th such line belongs to the n-th region of the plugin.
 * With clock=1 "ns=N" follows, which means something only where the processor is not emulated.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "marker.h"

#define MIB 1048576ul
#define SEED 0x52b3cull

static const struct engine *const engines[] = { &psync_engine, &uring_engine, &discard_engine, NULL };

static struct {
	const char *name, *device;
	const struct engine *engine;
	struct stream stream;
	unsigned long count, warm;
	unsigned int jobs, settle;
	bool fill, clock;
} want = {
	.engine = &psync_engine,
	.stream = { .size = 4096, .batch = 1, .span = 16 * MIB },
	.count = 1024, .warm = 256, .jobs = 1, .settle = 50,
};

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "load %s: ", want.name ?: "");
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

uint64_t next_offset(struct stream *stream)
{
	uint64_t blocks = stream->span / stream->size, block;

	if (stream->sequential) {
		block = stream->state++ % blocks;
	} else {
		stream->state = stream->state * 6364136223846793005ull + 1442695040888963407ull;
		block = (stream->state >> 33) % blocks;
	}
	return stream->start + block * stream->size;
}

static void set(const char *key, const char *value)
{
	unsigned long number = strtoul(value, NULL, 0);

	if (!strcmp(key, "engine")) {
		const struct engine *const *engine = engines;

		while (*engine && strcmp(value, (*engine)->name))
			engine++;
		if (!*engine)
			fail("there is no engine %s", value);
		want.engine = *engine;
	} else if (!strcmp(key, "op")) {
		want.stream.write = !strcmp(value, "write");
	} else if (!strcmp(key, "order")) {
		want.stream.sequential = !strcmp(value, "sequential");
	} else if (!strcmp(key, "bs")) {
		want.stream.size = number;
	} else if (!strcmp(key, "batch")) {
		want.stream.batch = number;
	} else if (!strcmp(key, "poll")) {
		want.stream.poll = number;
	} else if (!strcmp(key, "start")) {
		want.stream.start = number;
	} else if (!strcmp(key, "span")) {
		want.stream.span = number;
	} else if (!strcmp(key, "count")) {
		want.count = number;
	} else if (!strcmp(key, "warm")) {
		want.warm = number;
	} else if (!strcmp(key, "jobs")) {
		want.jobs = number;
	} else if (!strcmp(key, "fill")) {
		want.fill = number;
	} else if (!strcmp(key, "settle")) {
		want.settle = number;
	} else if (!strcmp(key, "clock")) {
		want.clock = number;
	} else {
		fail("there is no option %s", key);
	}
}

static void parse(int argc, char **argv)
{
	if (argc < 3)
		fail("usage: load NAME DEVICE [key=value...]");
	want.name = argv[1];
	want.device = argv[2];
	for (int i = 3; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			fail("%s is not key=value", argv[i]);
		*equals = '\0';
		set(argv[i], equals + 1);
	}
	if (!want.jobs || !want.stream.size || want.stream.span / want.jobs < want.stream.size || !want.stream.batch)
		fail("nothing to do");
}

/* Memory for one I/O, one huge page where the kernel has them: no page fault in the region, few segments. */
static char *buffer_of(size_t size)
{
	size_t huge = 2 * MIB;
	char *memory;

	if (size > huge)
		fail("an I/O is at most 2 MiB");
	memory = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("no memory");
	memory += huge - (uintptr_t)memory % huge;
	madvise(memory, huge, MADV_HUGEPAGE);
	memset(memory, 0, huge);
	return memory;
}

/*
 * Pins this process to the CPU of its number, and gives it its part of the range. A
 * discard is served by a worker, which the fair scheduler places beside this process in
 * one of several ways, depending on what ran in the past: so that one is kept apart.
 */
static struct stream prepare(unsigned int job)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct stream stream = want.stream;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(job, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("there is no CPU %u", job);
	if (want.engine == &discard_engine && sched_setscheduler(0, SCHED_FIFO, &first))
		fail("no real-time policy: %s", strerror(errno));
	stream.span /= want.jobs;
	stream.start += job * stream.span;
	stream.state = stream.sequential ? 0 : SEED + job;
	/* Whether a time of access is due depends on the second. */
	stream.fd = open(want.device, O_RDWR | O_DIRECT | O_NOATIME);
	if (stream.fd < 0)
		fail("%s: %s", want.device, strerror(errno));
	stream.buffer = buffer_of(stream.size);
	memset(stream.buffer, 0x5a, stream.size);
	want.engine->open(&stream);
	return stream;
}

static void fill(const struct stream *stream)
{
	for (uint64_t done = 0; done < stream->span;) {
		uint64_t left = stream->span - done;
		ssize_t n = pwrite(stream->fd, stream->buffer, left < MIB ? left : MIB, stream->start + done);

		if (n <= 0)
			fail("cannot fill the device: %s", strerror(errno));
		done += n;
	}
}

/* Waits until the kernel has freed what making and filling the device left behind: that is no part of any I/O. */
static void settle(void)
{
	usleep(want.settle * 1000);
}

static void warm_up(struct stream *stream)
{
	if (want.fill)
		fill(stream);
	settle();
	want.engine->run(stream, want.warm);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/*
 * Waits until the clock that moves with the kernel's tick has moved. Where ticks fall into a region is then decided by the
 * region alone, not by what ran before it, where the clock is a count of instructions.
 */
static void await_tick(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
	do {
		clock_gettime(CLOCK_MONOTONIC_COARSE, &after);
	} while (after.tv_sec == before.tv_sec && after.tv_nsec == before.tv_nsec);
}

/* These return the nanoseconds that the region took. */
static uint64_t run_here(void)
{
	struct stream stream = prepare(0);
	uint64_t start;

	warm_up(&stream);
	await_tick();
	start = now();
	marker_begin();
	want.engine->run(&stream, want.count);
	marker_end();
	return now() - start;
}

/* One job: says that it is warm, waits for all to be, works, says that it has done. */
static void child(unsigned int job, int from_parent, int to_parent)
{
	struct stream stream = prepare(job);
	char byte = 0;

	warm_up(&stream);
	if (write(to_parent, &byte, 1) != 1 || read(from_parent, &byte, 1) != 1)
		fail("lost the parent");
	want.engine->run(&stream, want.count);
	if (write(to_parent, &byte, 1) != 1)
		fail("lost the parent");
	_exit(0);
}

static void await(int from_children)
{
	char byte;

	for (unsigned int i = 0; i < want.jobs; i++)
		if (read(from_children, &byte, 1) != 1)
			fail("a job has failed");
}

static uint64_t run_jobs(void)
{
	int down[2], up[2], status;
	char go[64] = { 0 };
	uint64_t time;

	if (want.jobs > sizeof(go) || pipe(down) || pipe(up))
		fail("cannot start %u jobs", want.jobs);
	for (unsigned int job = 0; job < want.jobs; job++) {
		if (!fork()) {
			close(down[1]);
			close(up[0]);
			child(job, down[0], up[1]);
		}
	}
	close(up[1]);
	await(up[0]);
	time = now();
	marker_begin();
	if (write(down[1], go, want.jobs) != (ssize_t)want.jobs)
		fail("lost the jobs");
	await(up[0]);
	marker_end();
	time = now() - time;
	while (wait(&status) > 0)
		if (status)
			fail("a job has failed");
	return time;
}

int main(int argc, char **argv)
{
	uint64_t time;

	parse(argc, argv);
	time = want.jobs == 1 ? run_here() : run_jobs();
	printf("region %s ios=%lu bs=%zu jobs=%u", want.name, want.count * want.jobs, want.stream.size, want.jobs);
	if (want.clock)
		printf(" ns=%llu", (unsigned long long)time);
	putchar('\n');
	return 0;
}
