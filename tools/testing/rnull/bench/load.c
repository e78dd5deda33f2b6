// SPDX-License-Identifier: GPL-2.0
/*
 * Does a fixed number of I/Os on a block device, the same in each run, between two markers for the
 * counting plugin.
 *
 * usage: load NAME DEVICE [key=value...]
 *	engine=psync|uring|discard|flush
 *	engine=reset		resets a zone, whose size is the stride
 *	engine=report		reports up to 64 zones
 *	engine=append		appends to a zone, by the module of that name
 *	write=1			else read	sequential=1	else random
 *	bs=BYTES		of an I/O	batch=N		io_uring: I/Os submitted together
 *	stride=BYTES		I/Os begin at multiples of this; default: bs
 *	scatter=1		no two pages of the memory are adjacent
 *	poll=1			io_uring: poll for completions
 *	count=N			I/Os of each job in the region; 0: no region, only the warm-up
 *	warm=N			I/Os of each job before it
 *	span=BYTES		the I/Os are in the first BYTES of the device
 *	jobs=N			processes, each on its own CPU, with its own part of the span
 *	fill=1			write the span first: memory-backed devices then have their pages
 *	pause=MS		before the warm-up
 *
 * Prints "region NAME ios=N bs=N ns=N" after the region: the nth such line belongs to the plugin's
 * nth region. The time means something only where the processor is not emulated.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/blkzoned.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "marker.h"

#define MIB 1048576ul
#define HUGE_PAGE (2 * MIB)
#define SEED 0x52b3cull
/* More pages than first writes take. */
#define STOCK 8192
#define SECTOR 512
#define ZONES 64

static struct {
	unsigned long write, sequential, bs, stride, batch, poll, count, warm, span, jobs, fill;
	unsigned long pause, scatter;
} want = { .bs = 4096, .batch = 1, .count = 1024, .warm = 256, .span = 16 * MIB, .jobs = 1,
	   .pause = 50 };

static const struct {
	const char *name;
	unsigned long *value;
} options[] = {
	{ "write", &want.write }, { "sequential", &want.sequential }, { "bs", &want.bs },
	{ "batch", &want.batch }, { "poll", &want.poll },	{ "count", &want.count },
	{ "warm", &want.warm },	  { "span", &want.span },	{ "jobs", &want.jobs },
	{ "fill", &want.fill },	  { "pause", &want.pause },	{ "stride", &want.stride },
	{ "scatter", &want.scatter },
};

/* Of this job: its part of the device, the memory of one I/O, which all of them share. */
static int fd;
static char *buffer;
static uint64_t start, blocks, state;
static struct io_uring ring;
static const char *path;
static int appender = -1;

/* The offset of the next I/O. */
static uint64_t next_offset(void)
{
	uint64_t block;

	if (want.sequential) {
		block = state++;
	} else {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		block = state >> 33;
	}
	return start + block % blocks * want.stride;
}

static void check(long result, const char *what)
{
	if (result < 0)
		error(1, -result, "%s", what);
}

static void check_io(long done)
{
	if (done != (long)want.bs)
		error(1, done < 0 ? -done : 0, "I/O of %lu bytes: %ld", want.bs, done);
}

static void psync_run(unsigned long count)
{
	while (count--) {
		uint64_t at = next_offset();
		ssize_t done = want.write ? pwrite(fd, buffer, want.bs, at) :
					    pread(fd, buffer, want.bs, at);

		check_io(done < 0 ? -errno : done);
	}
}

static void discard_run(unsigned long count)
{
	while (count--) {
		uint64_t range[2] = { next_offset(), want.bs };

		check(ioctl(fd, BLKDISCARD, range) ? -errno : 0, "discard");
	}
}

static void flush_run(unsigned long count)
{
	while (count--)
		check(fdatasync(fd) ? -errno : 0, "flush");
}

static void reset_run(unsigned long count)
{
	while (count--) {
		struct blk_zone_range zone = { next_offset() / SECTOR, want.stride / SECTOR };

		check(ioctl(fd, BLKRESETZONE, &zone) ? -errno : 0, "reset");
	}
}

static void report_run(unsigned long count)
{
	struct blk_zone_report *report = (void *)buffer;

	while (count--) {
		report->sector = next_offset() / SECTOR;
		report->nr_zones = ZONES;
		check(ioctl(fd, BLKREPORTZONE, report) ? -errno : 0, "report");
		if (!report->nr_zones)
			error(1, 0, "no zone was reported");
	}
}

static void append_run(unsigned long count)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "%s %llu %lu 90 %lu", path,
			      (unsigned long long)next_offset() / SECTOR, want.bs / SECTOR, count);

	check(write(appender, text, length) < 0 ? -errno : 0, "append");
	/* It answers with a position, or with an error. */
	length = pread(appender, text, sizeof(text) - 1, 0);
	check(length < 0 ? -errno : 0, "append");
	text[length] = 0;
	check(atol(text), "append");
}

/*
 * File and buffer are registered, as in programs that are written for speed: to look them up for
 * each I/O costs more instructions than a null driver. The rings are not made by
 * io_uring_queue_init(), which would leave out the index array of the submission queue: the budget
 * was measured with it.
 */
static void uring_open(void)
{
	struct io_uring_params params = { .flags = want.poll ? IORING_SETUP_IOPOLL : 0 };
	struct iovec memory = { buffer, want.bs };
	int ring_fd = io_uring_setup(want.batch, &params);

	check(ring_fd, "io_uring_setup");
	check(io_uring_queue_mmap(ring_fd, &params, &ring), "io_uring_queue_mmap");
	ring.ring_fd = ring_fd;
	ring.enter_ring_fd = ring_fd;
	ring.flags = params.flags;
	for (unsigned int i = 0; i < params.sq_entries; i++)
		ring.sq.array[i] = i;
	check(io_uring_register_files(&ring, &fd, 1), "io_uring_register_files");
	check(io_uring_register_buffers(&ring, &memory, 1), "io_uring_register_buffers");
}

/* One system call submits a batch, then waits for all of it. */
static void uring_run(unsigned long count)
{
	while (count) {
		unsigned int left = count < want.batch ? count : want.batch;

		count -= left;
		for (unsigned int i = 0; i < left; i++) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

			io_uring_prep_rw(want.write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED,
					 sqe, 0, buffer, want.bs, next_offset());
			sqe->flags = IOSQE_FIXED_FILE;
		}
		while (left) {
			unsigned int head, reaped = 0;
			struct io_uring_cqe *cqe;

			check(io_uring_submit_and_wait(&ring, left), "io_uring_enter");
			io_uring_for_each_cqe(&ring, head, cqe) {
				check_io(cqe->res);
				reaped++;
			}
			io_uring_cq_advance(&ring, reaped);
			left -= reaped;
		}
	}
}

static const struct engine {
	const char *name;
	void (*run)(unsigned long count);
} engines[] = {
	{ "psync", psync_run }, { "uring", uring_run },	  { "discard", discard_run },
	{ "reset", reset_run }, { "report", report_run }, { "append", append_run },
	{ "flush", flush_run },
};

static const struct engine *engine = engines;

static bool set(const char *key, const char *value)
{
	if (!strcmp(key, "engine")) {
		for (size_t i = 0; i < sizeof(engines) / sizeof(*engines); i++) {
			if (!strcmp(value, engines[i].name)) {
				engine = &engines[i];
				return true;
			}
		}
	}
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (!strcmp(key, options[i].name)) {
			*options[i].value = strtoul(value, NULL, 0);
			return true;
		}
	}
	return false;
}

static void parse(int argc, char **argv)
{
	if (argc < 3)
		error(1, 0, "usage: load NAME DEVICE [key=value...]");
	for (int i = 3; i < argc; i++) {
		char *key = strtok(argv[i], "="), *value = strtok(NULL, "");

		if (!key || !value || !set(key, value))
			error(1, 0, "there is no option %s with such a value", argv[i]);
	}
	want.stride = want.stride ?: want.bs;
	if (!want.jobs || !want.bs || want.bs > HUGE_PAGE || want.stride < want.bs ||
	    want.span / want.jobs < want.stride || !want.batch ||
	    (engine->run != uring_run && (want.batch > 1 || want.poll)))
		error(1, 0, "these options do not go together");
}

/* Memory of small pages, of which neighbours come from the two halves of a file. */
static char *scattered(void)
{
	size_t page = getpagesize(), pages = HUGE_PAGE / page;
	int file = memfd_create("buffer", 0);
	char *memory = mmap(NULL, HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (file < 0 || memory == MAP_FAILED || ftruncate(file, HUGE_PAGE))
		error(1, errno, "memory");
	for (size_t i = 0; i < pages; i++)
		if (mmap(memory + i * page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 file, (i % 2 * pages / 2 + i / 2) * page) == MAP_FAILED)
			error(1, errno, "memory");
	return memory;
}

/*
 * Opens the device and allocates memory: a huge page, if the kernel has one, so that the region has
 * no page faults, and an I/O few segments. A discard or a flush is carried out by a worker, which the
 * fair scheduler would place in one of several ways, depending on what ran before: so the job gets a
 * real-time policy.
 */
static void prepare(const char *device, unsigned int job)
{
	const struct sched_param lowest = { .sched_priority = 1 };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(job, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		error(1, errno, "CPU %u", job);
	if ((engine->run == discard_run || engine->run == flush_run) && sched_setscheduler(0, SCHED_FIFO, &lowest))
		error(1, errno, "real-time policy");
	blocks = want.span / want.jobs / want.stride;
	start = want.span / want.jobs * job;
	state = want.sequential ? 0 : SEED + job;
	/* Whether a time of access is due depends on the second. */
	fd = open(device, O_RDWR | O_DIRECT | O_NOATIME);
	if (fd < 0)
		error(1, errno, "%s", device);
	buffer = want.scatter ? scattered() : aligned_alloc(HUGE_PAGE, HUGE_PAGE);
	if (!buffer)
		error(1, errno, "memory");
	madvise(buffer, HUGE_PAGE, MADV_HUGEPAGE);
	memset(buffer, 0x5a, HUGE_PAGE);
	if (engine->run == uring_run)
		uring_open();
	path = device;
	if (engine->run == append_run) {
		appender = open("/sys/module/append/parameters/append", O_RDWR);
		check(appender < 0 ? -errno : 0, "the module append");
	}
}

/*
 * Leaves pages on the CPU's list of free pages, where first writes then find theirs. Else it depends
 * on what ran before how often that list is empty. They are taken by a pipe, a page for each packet,
 * because they have to be of the kind that is not movable.
 */
static void stock_pages(void)
{
	int ends[2];

	if (pipe2(ends, O_DIRECT) || fcntl(ends[1], F_SETPIPE_SZ, STOCK * getpagesize()) < 0)
		error(1, errno, "pipe");
	for (unsigned int i = 0; i < STOCK; i++)
		if (write(ends[1], "", 1) != 1)
			error(1, errno, "pipe");
	close(ends[0]);
	close(ends[1]);
}

/* After the pause the kernel has freed what making and filling the device left behind. */
static void warm_up(void)
{
	uint64_t end = start + want.span / want.jobs;

	for (uint64_t at = start; want.fill && at < end;) {
		ssize_t n = pwrite(fd, buffer, end - at < MIB ? end - at : MIB, at);

		if (n <= 0)
			error(1, errno, "cannot fill the device");
		at += n;
	}
	usleep(want.pause * 1000);
	if (want.write && !want.fill)
		stock_pages();
	engine->run(want.warm);
}

static uint64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/*
 * Waits until the tick moves the clock: if the clock is a count of instructions, the region
 * alone then decides where ticks fall into it.
 */
static void wait_for_tick(void)
{
	uint64_t before = now(CLOCK_MONOTONIC_COARSE);

	while (now(CLOCK_MONOTONIC_COARSE) == before)
		;
}

static void on_child(int signal)
{
	int status;

	(void)signal;
	while (waitpid(-1, &status, WNOHANG) > 0)
		if (status)
			_exit(1);
}

int main(int argc, char **argv)
{
	pthread_barrierattr_t shared;
	pthread_barrier_t *barrier;
	unsigned int job = 0;
	uint64_t time = 0;

	parse(argc, argv);
	barrier = mmap(NULL, sizeof(*barrier), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (barrier == MAP_FAILED)
		error(1, errno, "memory");
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &shared, want.jobs);
	signal(SIGCHLD, on_child);
	/* This process is job 0. */
	for (unsigned int other = 1; other < want.jobs && !job; other++)
		if (!fork())
			job = other;
	prepare(argv[2], job);
	/* In turn, so that each run finds the device in the same state. */
	for (unsigned int turn = 0; turn < want.jobs; turn++) {
		if (turn == job)
			warm_up();
		if (want.jobs > 1)
			pthread_barrier_wait(barrier);
	}
	if (!want.count)
		return 0;
	if (!job) {
		wait_for_tick();
		time = now(CLOCK_MONOTONIC);
		MARKER(1);
	}
	if (want.jobs > 1)
		pthread_barrier_wait(barrier);
	engine->run(want.count);
	if (want.jobs > 1)
		pthread_barrier_wait(barrier);
	if (job)
		return 0;
	MARKER(2);
	printf("region %s ios=%lu bs=%lu ns=%llu\n", argv[1], want.count * want.jobs, want.bs,
	       (unsigned long long)(now(CLOCK_MONOTONIC) - time));
	return 0;
}
