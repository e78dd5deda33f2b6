// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to a disk that may go and come back, and reads what it had when a write to it succeeded.
 *
 * usage: kept_writes DISK STATE PAUSE
 *
 * Each of its threads sleeps PAUSE microseconds after a transfer. It ends at SIGTERM, or with a message
 * when data are wrong or a request has not ended in a minute. What it has done is in the file STATE: how
 * often each thread has read all its blocks, the writes, the errors, how often the disk was opened, by
 * how many threads it is open, and how many bytes were read and right.
 *
 * A block belongs to one thread. Each write has a new version of all its data. A write that succeeded
 * is there: its version, or one of a write after it that failed.
 */
#include <signal.h>

#include "util.h"

enum { THREADS = 8, BLOCKS = 16, MOST = 65536, SECTOR = 512, WORDS = SECTOR / 8, LIMIT = 60000 };

struct block {
	uint64_t offset, bytes;
	/* The versions of the last write that succeeded, and of the last one. */
	uint64_t kept, sent;
};

struct thread {
	uint64_t state;
	struct block blocks[BLOCKS];
	uint64_t *memory;
	int disk;
	atomic_long turns, since;
};

static const char *path;
static useconds_t rest;
static struct thread threads[THREADS];
static atomic_long writes, errors, opened, right;
static atomic_int is_open, stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* word: what a sector of a disk has at a place, of a version. */
static uint64_t word(uint64_t sector, uint64_t version, unsigned int at)
{
	return at ? (version << 32 | sector) * (0x9e3779b97f4a7c15ull + 2 * at) : version;
}

static void fill(struct thread *this, const struct block *block, uint64_t version)
{
	uint64_t *to = this->memory, sector, first = block->offset / SECTOR;

	for (sector = first; sector < first + block->bytes / SECTOR; sector++)
		for (unsigned int at = 0; at < WORDS; at++)
			*to++ = word(sector, version, at);
}

static void check(struct thread *this, const struct block *block)
{
	uint64_t *from = this->memory, sector, first = block->offset / SECTOR;

	for (sector = first; sector < first + block->bytes / SECTOR; sector++, from += WORDS) {
		if (*from < block->kept || *from > block->sent)
			die("sector %lu has version %#lx, of %lu to %lu that were written", sector, *from,
			    block->kept, block->sent);
		for (unsigned int at = 1; at < WORDS; at++)
			if (from[at] != word(sector, *from, at))
				die("sector %lu has wrong data at %u of version %lu", sector, at * 8, *from);
	}
}

/* close_disk: a request has failed, for which there is a reason only if the disk has gone. */
static void close_disk(struct thread *this)
{
	errors++;
	close(this->disk);
	this->disk = -1;
	is_open--;
}

/*
 * open_disk: waits until there is a disk. Its node is there before it can be opened, for which the kernel
 * would look for a driver.
 */
static bool open_disk(struct thread *this)
{
	while (this->disk < 0 && !stop) {
		usleep(50000);
		if (access(path, F_OK))
			continue;
		usleep(100000);
		this->disk = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	}
	if (this->disk < 0)
		return false;
	opened++;
	is_open++;
	return true;
}

/* transfer: whether it has succeeded; the disk is closed if not. */
static bool transfer(struct thread *this, struct block *block, bool is_write)
{
	ssize_t done;

	this->since = milliseconds();
	if (is_write) {
		fill(this, block, ++block->sent);
		done = pwrite(this->disk, this->memory, block->bytes, block->offset);
		if (done == (ssize_t)block->bytes)
			block->kept = block->sent;
		writes++;
	} else {
		done = pread(this->disk, this->memory, block->bytes, block->offset);
		if (done == (ssize_t)block->bytes) {
			check(this, block);
			right += done;
		}
	}
	this->since = 0;
	usleep(rest);
	if (done == (ssize_t)block->bytes)
		return true;
	close_disk(this);
	return false;
}

/* turn: writes some blocks, then reads all. */
static void turn(struct thread *this)
{
	for (unsigned int i = 0; i < BLOCKS / 2; i++)
		if (!transfer(this, &this->blocks[random_below(&this->state, BLOCKS)], true))
			return;
	for (unsigned int i = 0; i < BLOCKS; i++)
		if (!transfer(this, &this->blocks[i], false))
			return;
	this->turns++;
}

static void *work(void *arg)
{
	struct thread *this = arg;

	for (unsigned int i = 0; i < BLOCKS; i++)
		while (!this->blocks[i].kept && !stop)
			if (this->disk >= 0 || open_disk(this))
				transfer(this, &this->blocks[i], true);
	while (!stop)
		if (this->disk >= 0 || open_disk(this))
			turn(this);
	return NULL;
}

/* lay_out: blocks of 4 to 64 KiB, each thread's beside those of others. */
static void lay_out(void)
{
	uint64_t end = 0;

	for (unsigned int i = 0; i < BLOCKS; i++)
		for (unsigned int n = 0; n < THREADS; n++) {
			struct block *block = &threads[n].blocks[i];

			block->bytes = i % 8 ? 4096 << i % 3 : MOST;
			block->offset = end;
			end += block->bytes;
		}
}

/* show: replaces the content of the file. */
static void show(int file)
{
	char text[128];
	long turns = threads[0].turns;
	int length;

	for (unsigned int n = 1; n < THREADS; n++)
		if (threads[n].turns < turns)
			turns = threads[n].turns;
	length = snprintf(text, sizeof(text), "%ld %ld %ld %ld %d %ld\n", turns, writes, errors, opened,
			  is_open, right);
	memset(text + length, ' ', sizeof(text) - length);
	if (pwrite(file, text, sizeof(text), 0) < 0)
		die("the state: %s", verdict(-1));
}

int main(int count, char **words)
{
	int file;

	if (count != 4)
		die("usage: kept_writes DISK STATE PAUSE");
	path = words[1];
	rest = atol(words[3]);
	file = open(words[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0)
		die("open %s: %s", words[2], verdict(-1));
	signal(SIGTERM, on_signal);
	lay_out();
	for (unsigned int n = 0; n < THREADS; n++) {
		threads[n].state = n;
		threads[n].disk = -1;
		threads[n].memory = alloc_pages(MOST);
		start_thread(work, &threads[n]);
	}
	while (!stop) {
		show(file);
		usleep(5000);
		for (unsigned int n = 0; n < THREADS; n++) {
			long since = threads[n].since;

			if (since && milliseconds() - since > LIMIT)
				die("a request has not ended for %d ms", LIMIT);
		}
	}
	return 0;
}
