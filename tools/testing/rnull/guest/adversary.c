// SPDX-License-Identifier: GPL-2.0
/*
 * Leads the driver that does everything wrong through its scenes, while several threads use its disks.
 *
 * usage: adversary SEED FIRST STEPS [SECONDS]     ends after so many steps, or after so long
 *        adversary users SEED SECONDS             only uses what there is meanwhile, if there is anything
 *        adversary links SEED SECONDS             links to its directories, until they have been gone for a while
 *
 * The module must be loaded with the seed. Several steps of an odd seed leave a last scene to the unloading. Answers with
 * the number of steps, of transfers; or with the step after which the kernel has something to report, or whose end does
 * not come. For links, another module must be loaded that takes them; the answer is their number.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "util.h"
#include "ring.h"

#define TREE "/sys/kernel/config/adversary/"
#define KEEPER "/sys/kernel/config/keeper/"

/* What the module is told by: memory may be short for this act. */
#define SCARCE (1ul << 32)

enum { USERS = 4, ACTS = 6, LONGEST = 65536, PATIENCE = 80, POLLED = 8 };

/* What all threads share; the step that is on, and since when. */
static struct {
	atomic_bool stop;
	atomic_ulong moved, step;
	atomic_long since;
} shared;

struct chance {
	uint64_t state;
};

static uint64_t below(struct chance *c, uint64_t bound)
{
	uint64_t z = (c->state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (z ^ z >> 31) % bound;
}

/* put: writes a number to a file; false, with errno, if it does not take it. */
static bool put(const char *path, unsigned long number)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%lu\n", number);
	int fd = open(path, O_WRONLY | O_CLOEXEC), saved;
	bool taken = fd >= 0 && write(fd, text, length) == length;

	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return taken;
}

static void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		errno = 0;
	close(fd);
}

static long get(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return atol(text);
}

/* fail: lets the so-manieth allocation of this thread fail, for 0 none. */
static void fail(unsigned long nth)
{
	static __thread int file = -1;
	char text[32];

	if (file < 0)
		file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (file >= 0 && pwrite(file, text, snprintf(text, sizeof(text), "%lu", nth), 0) < 0)
		die("fail-nth: %s", verdict(-1));
}

/* find: one of the disks that there are, its name in `name`. */
static bool find(struct chance *c, char name[64])
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

/* knob: reads or writes one of the files by which a user changes the queue of a disk. */
static void knob(struct chance *c, const char *name)
{
	static const char *const schedulers[] = { "none", "mq-deadline", "kyber" };
	static const char *const read_only[] = { "hw_sector_size", "nr_zones", "write_cache", "dma_alignment" };
	char path[128];

	bool alone = strtoul(name + 3, NULL, 10) % 2;

	snprintf(path, sizeof(path), "/sys/block/%s/queue/", name);
	switch (below(c, 5)) {
	case 0:
		/* Disks of other steps share their tags: then C may deadlock when the number of queues changes. */
		if (!alone)
			return;
		strcat(path, "scheduler");
		put_text(path, schedulers[below(c, 3)]);
		break;
	case 1:
		/* And it loses sight of requests that another disk has (patches/upstream/blk-mq-resize-tags.patch). */
		if (!alone)
			return;
		strcat(path, "nr_requests");
		put(path, below(c, 80));
		break;
	case 2:
		strcat(path, "io_timeout");
		put(path, 20 + below(c, 200));
		break;
	case 3:
		strcat(path, "wbt_lat_usec");
		put(path, below(c, 2000));
		break;
	default:
		strcat(path, read_only[below(c, 4)]);
		get(path);
	}
}

/* transfer: something with the data of a disk; what it says does not matter. */
static void transfer(struct chance *c, int fd, unsigned char *buffer)
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
	flags = (below(c, 3) ? 0 : RWF_HIPRI) | (below(c, 4) ? 0 : RWF_NOWAIT) | (below(c, 6) ? 0 : RWF_DSYNC);
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
	shared.moved++;
}

/* polled: several transfers at once, whose ends are polled for. */
static void polled(struct chance *c, struct ring *ring, int fd, unsigned char *buffer)
{
	unsigned int send = 1 + below(c, POLLED), left = send;
	struct io_uring_cqe end;

	for (unsigned int i = 0; i < send; i++) {
		struct io_uring_sqe sqe = {
			.opcode = below(c, 2) ? IORING_OP_READ : IORING_OP_WRITE,
			.fd = fd,
			.off = below(c, 4096) * 4096,
			.addr = (uintptr_t)buffer,
			.len = 4096 * (1 + below(c, 4)),
		};

		ring_push(ring, &sqe);
	}
	while (left) {
		int sent = ring_enter(ring, send, 1, IORING_ENTER_GETEVENTS);

		if (sent > 0)
			send -= sent;
		while (ring_pop(ring, &end)) {
			left--;
			shared.moved++;
		}
	}
}

/* user: opens disks and uses them for a while. */
static void *user(void *arg)
{
	struct chance c = { (uintptr_t)arg };
	struct ring ring = { .fd = -1 };
	bool can_poll = ring_set_up(&ring, POLLED), direct, poll;
	unsigned char *buffer = aligned_alloc(4096, LONGEST + 8192);

	memset(buffer, 0x77, LONGEST + 8192);
	while (!shared.stop) {
		char name[64], path[80];
		int fd;

		if (!find(&c, name)) {
			usleep(2000);
			continue;
		}
		if (!below(&c, 4))
			knob(&c, name);
		snprintf(path, sizeof(path), "/dev/%s", name);
		direct = below(&c, 4);
		fd = open(path, O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0));
		if (fd < 0) {
			usleep(500);
			continue;
		}
		poll = can_poll && direct && below(&c, 3) == 0;
		for (uint64_t i = below(&c, 30); i && !shared.stop; i--) {
			if (poll && below(&c, 2)) {
				polled(&c, &ring, fd, buffer);
				continue;
			}
			if (below(&c, 8) == 0)
				fail(1 + below(&c, 20));
			transfer(&c, fd, buffer);
			fail(0);
		}
		close(fd);
	}
	return NULL;
}

/* worker: ends requests as a task, makes and removes directories, reads what there is. */
static void *worker(void *arg)
{
	struct chance c = { (uintptr_t)arg };
	static const char *const names[] = { "one", "two", "no", "a_rather_long_name" };

	while (!shared.stop) {
		char path[128];

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
		char path[128];

		snprintf(path, sizeof(path), TREE "%s", names[i]);
		rmdir(path);
	}
	return NULL;
}

/* let_go: gives up what links have kept, when the module's exit has returned, and it would be gone if it did not wait. */
static void let_go(void)
{
	static const char *const gone[] = { "/sys/module/rust_block_adversary/parameters", "/sys/module/rust_block_adversary" };

	for (int i = 0; i < 2000 && access(gone[0], F_OK) == 0; i++)
		usleep(10000);
	for (int i = 0; i < 50 && access(gone[1], F_OK) == 0; i++)
		usleep(10000);
	/* It should not be: only in a kernel that is broken does this take time. */
	if (access(gone[1], F_OK))
		sleep(2);
	put(KEEPER "put", 1);
}

/* links: has another subsystem link to directories of the module, and keep them, while it is unloaded. */
static unsigned long links(unsigned long seed, unsigned long seconds)
{
	static const char *const targets[] = { "", "leaf", "one", "one/leaf", "two" };
	struct chance c = { seed };
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
			let_go();
	}
	for (int i = 0; i < 4; i++) {
		snprintf(link, sizeof(link), KEEPER "link%d", i);
		unlink(link);
	}
	put(KEEPER "put", 1);
	return made;
}

/* watch: says which step does not end, before the guest's time is up, with what its tasks wait for. */
static void *watch(void *arg)
{
	(void)arg;
	while (time(NULL) - shared.since < PATIENCE)
		sleep(1);
	put_text("/proc/sysrq-trigger", "w");
	die("step %lu does not end", (unsigned long)shared.step);
	return NULL;
}

/* trouble: whether the kernel has warned, or lockdep has stopped, since a state that `before` was the first to see. */
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

/* play: all of one step, or all but its end; false if something of it stays. */
static bool play(unsigned long seed, unsigned long step, bool ends)
{
	struct chance c = { seed * 1000003 + step };
	unsigned long salt = below(&c, 1000);
	bool scarce = below(&c, 3) == 0, short_now, gone;

	/* Which allocation fails is a number that grows: each has its turn. */
	if (scarce)
		fail(1 + below(&c, 1 + step % 400));
	put(TREE "begin", step);
	fail(0);
	for (unsigned long act = 0; act < ACTS; act++) {
		usleep(below(&c, 30000));
		short_now = scarce && below(&c, 2);
		if (short_now)
			fail(1 + below(&c, below(&c, 4) ? 60 : 400));
		put(TREE "act", salt + act + (short_now ? SCARCE : 0));
		fail(0);
	}
	if (!ends)
		return true;
	usleep(below(&c, 20000));
	gone = put(TREE "end", 0);
	return gone || errno != ETIMEDOUT;
}

/* A child does it all: what is stuck in the kernel keeps it there, but not who waits for its answer. */
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

static pthread_t threads[USERS + 1];

static void start(unsigned long seed)
{
	for (uintptr_t i = 0; i <= USERS; i++)
		if (pthread_create(&threads[i], NULL, i < USERS ? user : worker, (void *)(seed * 16 + i)))
			die("pthread_create");
}

static void stop(void)
{
	shared.stop = true;
	for (int i = 0; i <= USERS; i++)
		pthread_join(threads[i], NULL);
}

int main(int count, char **words)
{
	unsigned long seed = count > 3 ? strtoul(words[1], NULL, 0) : 0;
	unsigned long first = count > 3 ? strtoul(words[2], NULL, 0) : 0;
	unsigned long steps = count > 3 ? strtoul(words[3], NULL, 0) : 0, done = 0;
	time_t end = time(NULL) + (count > 4 ? atol(words[4]) : 1000000);
	pthread_t watcher;

	if (count == 4 && !strcmp(words[1], "users")) {
		start(first);
		sleep(steps);
		stop();
		return 0;
	}
	if (count == 4 && !strcmp(words[1], "links")) {
		printf("%lu links\n", links(first, steps));
		return 0;
	}
	if (!steps)
		die("usage: adversary SEED FIRST STEPS [SECONDS]");
	in_child();
	trouble();
	shared.since = time(NULL);
	start(seed);
	if (pthread_create(&watcher, NULL, watch, NULL))
		die("pthread_create");
	for (; done < steps && time(NULL) < end; done++) {
		shared.step = first + done;
		shared.since = time(NULL);
		if (!play(seed, first + done, true))
			die("step %lu: something of it is not gone", first + done);
		if (trouble())
			die("step %lu: the kernel has something to report", first + done);
	}
	if (seed % 2 && steps > 1) {
		shared.step = first + done;
		shared.since = time(NULL);
		play(seed, first + done, false);
	}
	stop();
	printf("%lu steps, %lu transfers\n", done, (unsigned long)shared.moved);
	return 0;
}
