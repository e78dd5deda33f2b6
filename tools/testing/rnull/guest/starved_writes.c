// SPDX-License-Identifier: GPL-2.0
/*
 * Polled writes, to blocks that have no memory yet, while some allocations fail.
 *
 * usage: starved_writes DISK BLOCK OFFSET BYTES PERCENT
 *
 * Two threads with a ring each write the blocks of a range, 16 at once, and poll for them; they share
 * the polled queues. BYTES is a multiple of 64 blocks. Each write must be completed once. One that
 * succeeds must be there, one that finds no memory must leave zeros. Printed are the numbers of writes
 * and of allocations that failed: "2016 polled for, 285 without memory, 1859 pages and 47 objects
 * failed".
 */
#include "faults.h"
#include "polled.h"

enum { DEPTH = 16, THREADS = 2 };

struct share {
	const char *path;
	size_t block;
	uint64_t offset, bytes;
	char *failed;
	long ended, denied;
};

static atomic_int ready;
static atomic_bool start;

/* content: each block has its own. */
static void content(unsigned char *data, size_t block, uint64_t offset)
{
	for (size_t i = 0; i < block; i++)
		data[i] = 1 + (offset / block * 31 + i / 512) % 255;
}

/* block_of: the block that a round writes as its Nth; a gap keeps two from being merged. */
static uint64_t block_of(unsigned int round, unsigned int n)
{
	return round / 2 * 2 * DEPTH + 2 * n + round % 2;
}

/* write_round: sends DEPTH writes, then polls until each has completed once. */
static void write_round(struct io_uring *ring, int disk, unsigned char *data, struct share *share,
			unsigned int round)
{
	bool ended[DEPTH] = { false };

	for (unsigned int i = 0; i < DEPTH; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
		uint64_t offset = share->offset + block_of(round, i) * share->block;

		content(data + i * share->block, share->block, offset);
		io_uring_prep_write(sqe, disk, data + i * share->block, share->block, offset);
		io_uring_sqe_set_data64(sqe, i);
	}
	if (submit_unpolled(ring) != DEPTH)
		die("io_uring_enter: %s", verdict(-1));
	for (unsigned int i = 0; i < DEPTH; i++) {
		struct io_uring_cqe *cqe;
		int result;

		do
			result = io_uring_wait_cqe(ring, &cqe);
		while (result == -EINTR || result == -EAGAIN);
		if (result || cqe->user_data >= DEPTH || ended[cqe->user_data])
			die("completion %u of a round: %d", i, result);
		ended[cqe->user_data] = true;
		if (cqe->res != (int)share->block && cqe->res != -ENOSPC)
			die("a write says %d", cqe->res);
		share->failed[block_of(round, cqe->user_data)] = cqe->res < 0;
		share->denied += cqe->res < 0;
		share->ended++;
		io_uring_cqe_seen(ring, cqe);
	}
}

static void *writes(void *argument)
{
	struct share *share = argument;
	const unsigned int rounds = share->bytes / share->block / DEPTH;
	unsigned char *data = alloc_pages(DEPTH * share->block);
	int disk = open_direct(share->path, O_RDWR);
	struct io_uring ring;

	polled_ring(&ring, DEPTH);
	/* What io_uring and the block layer keep for this thread is there from now on. */
	write_round(&ring, disk, data, share, 0);
	share->ended = 0;
	share->denied = 0;
	ready++;
	while (!start)
		usleep(1000);
	for (unsigned int round = 1; round < rounds; round++)
		write_round(&ring, disk, data, share, round);
	io_uring_queue_exit(&ring);
	close(disk);
	return NULL;
}

static void check(const struct share *share)
{
	unsigned char *data = alloc_pages(share->block), *right = alloc_pages(share->block);
	int disk = open_direct(share->path, O_RDONLY);

	for (uint64_t at = 0; at < share->bytes; at += share->block) {
		content(right, share->block, share->offset + at);
		if (share->failed[at / share->block])
			memset(right, 0, share->block);
		if (pread(disk, data, share->block, share->offset + at) != (ssize_t)share->block)
			die("read: %s", verdict(-1));
		if (memcmp(data, right, share->block))
			die("a write that %s", share->failed[at / share->block] ?
			    "found no memory has left something" : "succeeded is not there");
	}
	close(disk);
}

int main(int count, char **words)
{
	struct share shares[THREADS];
	pthread_t threads[THREADS];
	long ended = 0, denied = 0;

	if (count != 6)
		die("usage: starved_writes DISK BLOCK OFFSET BYTES PERCENT");
	count_faults();
	/* A request that is lost makes a thread poll for ever. */
	alarm(300);
	for (int i = 0; i < THREADS; i++) {
		const uint64_t bytes = strtoull(words[4], NULL, 0) / THREADS;

		shares[i] = (struct share){ .path = words[1], .block = atol(words[2]), .bytes = bytes,
					    .offset = strtoull(words[3], NULL, 0) + i * bytes };
		shares[i].failed = alloc_pages(bytes / shares[i].block);
		threads[i] = start_thread(writes, &shares[i]);
	}
	while (ready < THREADS)
		usleep(1000);
	fail_allocations(words[5]);
	start = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fail_allocations("0");
	for (int i = 0; i < THREADS; i++) {
		check(&shares[i]);
		ended += shares[i].ended;
		denied += shares[i].denied;
	}
	printf("%ld polled for, %ld without memory, %ld pages and %ld objects failed\n", ended, denied,
	       faults_counted(0), faults_counted(1));
	return 0;
}
