// SPDX-License-Identifier: GPL-2.0
/*
 * I/O of all kinds, of which any may fail; prints how much succeeded and failed.
 *
 * usage: any_io MILLISECONDS SEED DISK...
 *
 * For each disk, two threads send batches, one of them of polled I/O, and three send single requests.
 * Each opens the disk again from time to time, with other memory, and ends when there is no such disk
 * any more.
 */
#include <liburing.h>

#include "util.h"

enum { SINGLE = 3, BATCH = 32, MOST = 1 << 20, PAGE = 4096 };

struct worker {
	const char *path;
	uint64_t state;
	bool is_batch, is_polled;
	pthread_t thread;
};

static long end;
static atomic_long succeeded, failed;

static void count(long result)
{
	if (result < 0)
		atomic_fetch_add(&failed, 1);
	else
		atomic_fetch_add(&succeeded, 1);
}

/* range: a part of a disk that begins and ends with blocks of 4 KiB, mostly small. */
static uint64_t range(uint64_t *state, uint64_t size, uint64_t *begin)
{
	uint64_t len = (1 + random_below(state, 1u << random_below(state, 9))) * PAGE;

	if (len > size)
		len = size;
	*begin = random_below(state, (size - len) / PAGE + 1) * PAGE;
	return len;
}

static void single(struct worker *this, int disk, uint64_t size, char *memory)
{
	uint64_t begin, len = range(&this->state, size, &begin);
	uint64_t part[2] = { begin, len };
	/* Parts of pages, too, of small blocks. */
	unsigned int shift = random_below(&this->state, 4) * 512;

	switch (random_below(&this->state, 16)) {
	case 0:
		count(ioctl(disk, BLKDISCARD, part));
		break;
	case 1:
		count(ioctl(disk, BLKZEROOUT, part));
		break;
	case 2:
		count(fsync(disk));
		break;
	case 3 ... 8:
		count(pwrite(disk, memory + shift, len, begin));
		break;
	default:
		count(pread(disk, memory + shift, len, begin));
	}
}

static void batch(struct worker *this, int disk, uint64_t size, char *memory, struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
		uint64_t begin;

		range(&this->state, size, &begin);
		if (random_below(&this->state, 2))
			io_uring_prep_read(sqe, disk, memory + i * PAGE, PAGE, begin);
		else
			io_uring_prep_write(sqe, disk, memory + i * PAGE, PAGE, begin);
	}
	if (io_uring_submit(ring) < 0)
		die("io_uring_submit");
	for (i = 0; i < BATCH; i++) {
		if (io_uring_wait_cqe(ring, &cqe))
			die("io_uring_wait_cqe");
		count(cqe->res);
		io_uring_cqe_seen(ring, cqe);
	}
}

static void *work(void *arg)
{
	struct worker *this = arg;
	struct io_uring ring;

	if (this->is_batch && io_uring_queue_init(BATCH, &ring, this->is_polled ? IORING_SETUP_IOPOLL : 0))
		die("io_uring_queue_init");
	while (milliseconds() < end) {
		int disk = open(this->path, O_RDWR | O_CLOEXEC |
				(random_below(&this->state, 4) ? O_DIRECT : 0));
		char *memory = alloc_pages(MOST + PAGE);
		uint64_t size;
		int tries = 64;

		if (disk < 0)
			break;
		if (!ioctl(disk, BLKGETSIZE64, &size) && size >= PAGE) {
			/* The end of a large disk is of interest, but more so what exists. */
			if (random_below(&this->state, 16) && size > (16 << 20))
				size = 16 << 20;
			while (tries-- && milliseconds() < end) {
				if (this->is_batch)
					batch(this, disk, size, memory, &ring);
				else
					single(this, disk, size, memory);
			}
		} else {
			usleep(1000);
		}
		close(disk);
		/* A device that still used it would be found out. */
		munmap(memory, MOST + PAGE);
	}
	return NULL;
}

int main(int count, char **words)
{
	static struct worker workers[256];
	unsigned int n = 0, i;
	long seed;

	if (count < 3)
		die("usage: any_io MILLISECONDS SEED DISK...");
	end = milliseconds() + atol(words[1]);
	seed = atol(words[2]);
	for (words += 3; *words && n + SINGLE + 2 <= 256; words++)
		for (i = 0; i < SINGLE + 2; i++, n++)
			workers[n] = (struct worker) {
				.path = *words, .is_batch = i < 2, .is_polled = i == 1, .state = seed * 1000 + n,
			};
	for (i = 0; i < n; i++)
		workers[i].thread = start_thread(work, &workers[i]);
	for (i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	printf("%ld succeeded, %ld failed\n", succeeded, failed);
	return 0;
}
