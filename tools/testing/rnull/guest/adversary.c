// SPDX-License-Identifier: GPL-2.0
/*
 * Drives the module that makes every mistake that compiles, while several threads use its disks.
 *
 * usage: adversary SEED FIRST STEPS [SECONDS]     ends after that many steps or seconds
 *        adversary users SEED SECONDS             only uses the disks that there are
 *        adversary links SEED SECONDS             links to its directories, until they are gone
 *
 * The module must be loaded with the seed. Several steps of an odd seed leave a last scene to the
 * unloading. Prints the number of steps and of transfers; or the step after which the kernel has
 * reported something, or which does not end. `links` needs the module `keeper`, and prints the
 * number of links.
 */
#include <dirent.h>
#include <liburing.h>
#include <linux/blkzoned.h>

#include "util.h"

#define TREE "/sys/kernel/config/adversary/"
#define KEEPER "/sys/kernel/config/keeper/"
/* Of the module `append`, if there is one. */
#define APPEND "/sys/module/append/parameters/append"

/* Since Linux 6.19. */
#ifndef BLKREPORTZONEV2
#define BLKREPORTZONEV2 _IOWR(0x12, 142, struct blk_zone_report)
#define BLK_ZONE_REP_CACHED (1U << 31)
#endif

/* For the module: allocations may fail during this act. */
#define SCARCE (1ul << 32)

enum { USERS = 4, ACTS = 6, LONGEST = 65536, PATIENCE = 80, POLLED = 8 };
enum { ZONES = 64, MOST_ZONES = 1024 };

static atomic_bool stopped;
/* The current step, and when it began. */
static atomic_ulong transfers, current;
static atomic_long since;
static pthread_t threads[USERS + 1];

#define below random_below

/* put: writes a number to a file. */
static bool put(const char *path, unsigned long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu\n", number);
	return !write_file(path, text);
}

static long get(const char *path)
{
	char text[4096];

	return read_file(path, text) ? atol(text) : -1;
}

/* fail: lets the Nth allocation of this thread fail; none for 0. */
static void fail(unsigned long nth)
{
	static __thread int file = -1;
	char text[32];

	if (file < 0)
		file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (file >= 0 && pwrite(file, text, snprintf(text, sizeof(text), "%lu", nth), 0) < 0)
		die("fail-nth: %s", verdict(-1));
}

/* find: one of the disks of the module. */
static bool find(uint64_t *c, char name[64])
{
	DIR *dir = opendir("/sys/block");
	struct dirent *entry;
	unsigned long seen = 0;

	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "adv", 3) && below(c, ++seen) == 0)
			snprintf(name, 64, "%.60s", entry->d_name);
	if (dir)
		closedir(dir);
	return seen;
}

/* use_attribute: reads or writes an attribute of the queue of a disk. */
static void use_attribute(uint64_t *c, const char *disk)
{
	static const char *const schedulers[] = { "none", "mq-deadline", "kyber" };
	static const char *const names[] = { "scheduler",      "nr_requests", "io_timeout",
					     "wbt_lat_usec",   "nr_zones",    "write_cache",
					     "hw_sector_size", "dma_alignment" };
	unsigned int which = below(c, 5);
	char path[128];

	/*
	 * Disks of even steps share their tags. Then C may deadlock when the number of queues
	 * changes, and loses requests of other disks when nr_requests does
	 * (patches/upstream/blk-mq-resize-tags.patch).
	 */
	if (which < 2 && strtoul(disk + 3, NULL, 10) % 2 == 0)
		return;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/%s", disk,
		 names[which < 4 ? which : 4 + below(c, 4)]);
	if (which == 0)
		write_file(path, schedulers[below(c, 3)]);
	else if (which == 1)
		put(path, below(c, 80));
	else if (which == 2)
		put(path, 20 + below(c, 200));
	else if (which == 3)
		put(path, below(c, 2000));
	else
		get(path);
}

/* transfer: reads or changes the data of a disk; the result does not matter. */
static void transfer(uint64_t *c, int fd, unsigned char *buffer)
{
	uint64_t size = 0, sectors, range[2];
	struct iovec data;
	int flags;

	ioctl(fd, BLKGETSIZE64, &size);
	sectors = size / 512 ? size / 512 : 1;
	range[0] = below(c, sectors < 32768 ? sectors : 32768) * 512;
	range[1] = (1 + below(c, LONGEST / 512)) * 512;
	if (below(c, 3)) {
		range[0] &= ~4095ull;
		range[1] = (range[1] + 4095) & ~4095ull;
	}
	data = (struct iovec){ buffer + (below(c, 4) ? 0 : 512), range[1] };
	flags = (below(c, 3) ? 0 : RWF_HIPRI) | (below(c, 4) ? 0 : RWF_NOWAIT);
	flags |= below(c, 6) ? 0 : RWF_DSYNC;
	switch (below(c, 16)) {
	case 0:
		ioctl(fd, BLKDISCARD, range);
		break;
	case 1:
		ioctl(fd, BLKZEROOUT, range);
		break;
	case 2:
		fdatasync(fd);
		break;
	case 3:
		ioctl(fd, BLKRRPART);
		break;
	case 4 ... 9:
		preadv2(fd, &data, 1, range[0], flags & ~RWF_DSYNC);
		break;
	default:
		pwritev2(fd, &data, 1, range[0], flags);
	}
	transfers++;
}

/* polled: sends several transfers together, then polls for their completion. */
static void polled(uint64_t *c, struct io_uring *ring, int fd, unsigned char *buffer)
{
	unsigned int left = 1 + below(c, POLLED);
	struct io_uring_cqe *cqe;

	for (unsigned int i = 0; i < left; i++) {
		uint64_t offset = below(c, 4096) * 4096, length = 4096 * (1 + below(c, 4));

		io_uring_prep_rw(below(c, 2) ? IORING_OP_READ : IORING_OP_WRITE,
				 io_uring_get_sqe(ring), fd, buffer, length, offset);
	}
	while (left) {
		io_uring_submit_and_wait(ring, 1);
		for (; left && !io_uring_peek_cqe(ring, &cqe); left--, transfers++)
			io_uring_cqe_seen(ring, cqe);
	}
}

/*
 * may_poll: whether a disk is the first of its step. The block layer may take the number of a
 * hardware queue from a bio of another disk, see patches/upstream/blk-mq-poll-cookie.patch.
 */
static bool may_poll(const char *disk)
{
	size_t length = strlen(disk);

	return length > 2 && !strcmp(disk + length - 2, "_1");
}

/* use_zones: asks for zones, manages one of them or more, and writes to it. */
static void use_zones(uint64_t *c, int fd, const char *disk, unsigned char *buffer)
{
	static const unsigned long requests[] = { BLKRESETZONE, BLKOPENZONE, BLKCLOSEZONE,
						  BLKFINISHZONE };
	static __thread struct {
		struct blk_zone_report head;
		struct blk_zone zones[ZONES];
	} report;
	struct blk_zone_range range;
	uint64_t size = 0, length;
	struct blk_zone *zone;
	char text[128];

	ioctl(fd, BLKGETSIZE64, &size);
	memset(&report.head, 0, sizeof(report.head));
	report.head.sector = below(c, 3) ? 0 : below(c, size / 512 + 2);
	report.head.nr_zones = 1 + below(c, ZONES);
	report.head.flags = below(c, 2) ? BLK_ZONE_REP_CACHED : 0;
	if (ioctl(fd, below(c, 2) ? BLKREPORTZONE : BLKREPORTZONEV2, &report) < 0 ||
	    !report.head.nr_zones)
		return;
	zone = &report.zones[below(c, report.head.nr_zones)];
	range = (struct blk_zone_range){ zone->start, zone->len };
	length = (1 + below(c, 16)) * 4096;
	switch (below(c, 8)) {
	case 0:
		/* The kernel loops over all zones, of which a disk can have millions. */
		if (size / 512 / zone->len > MOST_ZONES)
			break;
		range = (struct blk_zone_range){ 0, size / 512 };
		ioctl(fd, requests[below(c, 4)], &range);
		break;
	case 1:
		range.nr_sectors *= 1 + below(c, 4);
		ioctl(fd, requests[below(c, 4)], &range);
		break;
	case 2:
		ioctl(fd, requests[below(c, 4)], &range);
		break;
	case 3:
		snprintf(text, sizeof(text), "/dev/%s %llu %u %u", disk, zone->start,
			 1 + (unsigned int)below(c, 128), 1);
		write_file(APPEND, text);
		break;
	case 4:
		range = (struct blk_zone_range){ below(c, 999), below(c, 999) };
		ioctl(fd, requests[below(c, 4)], &range);
		break;
	default:
		/* A sequence of writes at the pointer, if it tells the truth. */
		for (uint64_t at = zone->wp * 512, i = below(c, 4); i; i--, at += length)
			pwritev2(fd, &(struct iovec){ buffer, length }, 1, at,
				 below(c, 4) ? 0 : RWF_NOWAIT);
	}
	transfers++;
}

/* user: opens disks and uses them for a while. */
static void *user(void *arg)
{
	uint64_t c = (uintptr_t)arg;
	struct io_uring ring;
	bool can_poll = !io_uring_queue_init(POLLED, &ring, IORING_SETUP_IOPOLL), direct, poll;
	unsigned char *buffer = alloc_pages(LONGEST + 8192);

	memset(buffer, 0x77, LONGEST + 8192);
	while (!stopped) {
		char name[64], path[80];
		int fd;

		if (!find(&c, name)) {
			usleep(2000);
			continue;
		}
		if (!below(&c, 4))
			use_attribute(&c, name);
		snprintf(path, sizeof(path), "/dev/%s", name);
		direct = below(&c, 4);
		fd = open(path, O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0));
		if (fd < 0) {
			usleep(500);
			continue;
		}
		poll = can_poll && direct && below(&c, 3) == 0 && may_poll(name);
		for (uint64_t i = below(&c, 30); i && !stopped; i--) {
			if (poll && below(&c, 2)) {
				polled(&c, &ring, fd, buffer);
				continue;
			}
			if (below(&c, 8) == 0)
				fail(1 + below(&c, 20));
			if (below(&c, 3))
				transfer(&c, fd, buffer);
			else
				use_zones(&c, fd, name, buffer);
			fail(0);
		}
		close(fd);
	}
	return NULL;
}

/* worker: ends requests from task context, makes, reads and removes directories. */
static void *worker(void *arg)
{
	static const char *const names[] = { "one", "two", "no", "a_rather_long_name" };
	uint64_t c = (uintptr_t)arg;
	char path[128];

	while (!stopped) {
		put(TREE "work", 0);
		snprintf(path, sizeof(path), TREE "%s", names[below(&c, 4)]);
		switch (below(&c, 6)) {
		case 0:
			mkdir(path, 0755);
			break;
		case 1:
			rmdir(path);
			break;
		case 2:
			strcat(path, "/value");
			get(path);
			put(path, below(&c, 9));
			break;
		case 3:
			strcat(path, "/leaf/value");
			get(path);
			break;
		case 4:
			get(TREE "begin");
			break;
		default:
			usleep(below(&c, 3000));
		}
	}
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), TREE "%s", names[i]);
		rmdir(path);
	}
	return NULL;
}

/*
 * drop_links: drops the references that links hold, once the module's exit function has returned.
 *
 * The module is gone by then only if its exit function did not wait for the references.
 */
static void drop_links(void)
{
	static const char module[] = "/sys/module/rust_block_adversary";
	static const char parameters[] = "/sys/module/rust_block_adversary/parameters";

	for (int i = 0; i < 2000 && !access(parameters, F_OK); i++)
		usleep(10000);
	for (int i = 0; i < 50 && !access(module, F_OK); i++)
		usleep(10000);
	/* Only a broken kernel gets here: its freed memory is given time to be used again. */
	if (access(module, F_OK))
		sleep(2);
	put(KEEPER "put", 1);
}

/* links: another subsystem links to directories of the module while that is being unloaded. */
static unsigned long links(unsigned long seed, unsigned long seconds)
{
	static const char *const targets[] = { "", "leaf", "one", "one/leaf", "two" };
	uint64_t c = seed;
	unsigned long made = 0, missing = 0;
	time_t end = time(NULL) + seconds;
	char target[64], link[64];

	while (missing < 200 && time(NULL) < end) {
		snprintf(link, sizeof(link), KEEPER "link%d", (int)below(&c, 4));
		snprintf(target, sizeof(target), TREE "%s", targets[below(&c, 5)]);
		switch (below(&c, 8)) {
		case 0 ... 3:
			made += symlink(target, link) == 0;
			break;
		case 4:
			if (below(&c, 4) == 0)
				put(KEEPER "put", 1);
			break;
		case 5:
			usleep(below(&c, 2000));
			break;
		default:
			unlink(link);
		}
		if (access(TREE, F_OK) == 0)
			missing = 0;
		else if (!missing++)
			drop_links();
	}
	for (int i = 0; i < 4; i++) {
		snprintf(link, sizeof(link), KEEPER "link%d", i);
		unlink(link);
	}
	put(KEEPER "put", 1);
	return made;
}

/* watch: reports a step that does not end, before the guest's time limit, with blocked tasks. */
static void *watch(void *arg)
{
	(void)arg;
	while (time(NULL) - since < PATIENCE)
		sleep(1);
	write_file("/proc/sysrq-trigger", "w");
	die("step %lu does not end", current);
}

/* trouble: whether the kernel has warned since the first call, or lockdep has stopped. */
static bool trouble(void)
{
	static long taint = -1;
	long now = get("/proc/sys/kernel/tainted");
	FILE *stats = fopen("/proc/lockdep_stats", "r");
	char line[256];
	bool broken = false;

	while (stats && fgets(line, sizeof(line), stats))
		if (strstr(line, "debug_locks:"))
			broken = !atoi(strchr(line, ':') + 1);
	if (stats)
		fclose(stats);
	if (taint < 0)
		taint = now;
	return broken || now != taint;
}

/* play: a step with or without its end; false if something of it stays. */
static bool play(unsigned long seed, unsigned long step, bool ends)
{
	uint64_t c = seed * 1000003 + step;
	unsigned long salt = below(&c, 1000);
	bool scarce = below(&c, 3) == 0, fails;

	/* The number grows with the step, so that each allocation fails at some time. */
	if (scarce)
		fail(1 + below(&c, 1 + step % 400));
	put(TREE "begin", step);
	fail(0);
	for (unsigned long act = 0; act < ACTS; act++) {
		usleep(below(&c, 30000));
		fails = scarce && below(&c, 2);
		if (fails)
			fail(1 + below(&c, below(&c, 4) ? 60 : 400));
		put(TREE "act", salt + act + (fails ? SCARCE : 0));
		fail(0);
	}
	if (!ends)
		return true;
	usleep(below(&c, 20000));
	return put(TREE "end", 0) || errno != ETIMEDOUT;
}

/* in_child: continues in a child, which may get stuck in the kernel, unlike the parent. */
static void in_child(void)
{
	char text[512];
	int ends[2];
	ssize_t length;

	if (pipe(ends))
		die("pipe: %s", verdict(-1));
	if (!fork()) {
		dup2(ends[1], STDOUT_FILENO);
		return;
	}
	length = read(ends[0], text, sizeof(text));
	if (length > 0)
		fwrite(text, 1, length, stdout);
	fflush(stdout);
	_exit(0);
}

static void start(unsigned long seed)
{
	for (uintptr_t i = 0; i <= USERS; i++)
		threads[i] = start_thread(i < USERS ? user : worker, (void *)(seed * 16 + i));
}

static void stop(void)
{
	stopped = true;
	for (int i = 0; i <= USERS; i++)
		pthread_join(threads[i], NULL);
}

static void play_all(unsigned long seed, unsigned long first, unsigned long steps, time_t end)
{
	unsigned long done = 0;

	in_child();
	trouble();
	since = time(NULL);
	start(seed);
	start_thread(watch, NULL);
	for (; done < steps && time(NULL) < end; done++) {
		current = first + done;
		since = time(NULL);
		if (!play(seed, current, true))
			die("step %lu: something of it is not gone", current);
		if (trouble())
			die("step %lu: the kernel has something to report", current);
	}
	if (seed % 2 && steps > 1) {
		current = first + done;
		since = time(NULL);
		play(seed, current, false);
	}
	stop();
	printf("%lu steps, %lu transfers\n", done, transfers);
}

int main(int count, char **words)
{
	unsigned long numbers[4] = { 0, 0, 0, 1000000 };

	for (int i = 0; i < 4 && i + 1 < count; i++)
		numbers[i] = strtoul(words[i + 1], NULL, 0);
	if (count == 4 && !strcmp(words[1], "users")) {
		start(numbers[1]);
		sleep(numbers[2]);
		stop();
	} else if (count == 4 && !strcmp(words[1], "links")) {
		printf("%lu links\n", links(numbers[1], numbers[2]));
	} else if (numbers[2]) {
		play_all(numbers[0], numbers[1], numbers[2], time(NULL) + numbers[3]);
	} else {
		die("usage: adversary SEED FIRST STEPS [SECONDS]");
	}
	return 0;
}
