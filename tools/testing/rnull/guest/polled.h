/* SPDX-License-Identifier: GPL-2.0 */
/* Polled I/O of io_uring, which is submitted and polled for in two steps. */
#ifndef RNULL_POLLED_H
#define RNULL_POLLED_H

#include <liburing.h>

#include "util.h"

static inline void polled_ring(struct io_uring *ring, unsigned int depth)
{
	errno = -io_uring_queue_init(depth, ring, IORING_SETUP_IOPOLL);
	if (errno)
		die("io_uring_queue_init: %s", verdict(-1));
}

/* submit_unpolled: unlike io_uring_submit(), does not poll for completions. */
static inline long submit_unpolled(struct io_uring *ring)
{
	unsigned int count = ring->sq.sqe_tail - ring->sq.sqe_head;

	ring->sq.sqe_head = ring->sq.sqe_tail;
	io_uring_smp_store_release(ring->sq.ktail, ring->sq.sqe_tail);
	return syscall(SYS_io_uring_enter, ring->ring_fd, count, 0, 0, NULL, 0);
}

/* open_inflight: the attribute of a disk for in_flight(), which then takes no memory. */
static inline int open_inflight(const char *disk)
{
	char path[128], text[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/block/%s/inflight", strrchr(disk, '/') + 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* The first read allocates the buffer of the file. */
	if (fd < 0 || pread(fd, text, sizeof(text), 0) < 0)
		die("%s: %s", path, verdict(-1));
	return fd;
}

/* in_flight: how many requests the driver has. */
static inline unsigned int in_flight(int inflight)
{
	char text[64] = "";
	unsigned int reads, writes;

	if (pread(inflight, text, sizeof(text) - 1, 0) < 0 ||
	    sscanf(text, "%u %u", &reads, &writes) != 2)
		die("inflight: '%s', %s", text, verdict(-1));
	return reads + writes;
}

/* A write, and what was seen of it. */
struct polled_write {
	struct io_uring ring;
	int inflight;
	/* The driver had it until it was polled for. */
	bool reached_driver;
};

static inline void prepare_polled_write(struct polled_write *write, const char *path, int disk,
					void *data, size_t bytes, uint64_t offset)
{
	void *read = alloc_pages(bytes);
	struct io_uring_cqe *cqe;

	polled_ring(&write->ring, 1);
	/* After this, io_uring has most of what it needs for itself. */
	io_uring_prep_read(io_uring_get_sqe(&write->ring), disk, read, bytes, offset);
	errno = submit_unpolled(&write->ring) == 1 ? 0 : errno;
	if (!errno)
		errno = -io_uring_wait_cqe(&write->ring, &cqe);
	if (errno || cqe->res != (int)bytes)
		die("a polled read: %s", errno ? verdict(-1) : "short");
	io_uring_cqe_seen(&write->ring, cqe);
	munmap(read, bytes);
	io_uring_prep_write(io_uring_get_sqe(&write->ring), disk, data, bytes, offset);
	write->inflight = open_inflight(path);
	write->reached_driver = false;
}

/*
 * do_polled_write: returns what pwrite() would; the program ends if the write is lost.
 *
 * What the driver says, it must say when it is polled, and not before.
 */
static inline ssize_t do_polled_write(struct polled_write *write)
{
	struct io_uring_cqe *cqe;
	int result = 1;

	alarm(60);
	if (submit_unpolled(&write->ring) != 1)
		result = -errno;
	/* A worker of io_uring may take over. */
	for (int tries = 0; result == 1 && tries < 20 && !write->reached_driver; tries++) {
		write->reached_driver = in_flight(write->inflight);
		if (!write->reached_driver)
			usleep(1000);
	}
	if (result == 1) {
		do
			result = io_uring_wait_cqe(&write->ring, &cqe);
		while (result == -EINTR || result == -EAGAIN);
		if (!result)
			result = cqe->res;
	}
	alarm(0);
	if ((result >= 0 || result == -ENOSPC) && !write->reached_driver)
		die("a write was completed before it was polled for");
	close(write->inflight);
	io_uring_queue_exit(&write->ring);
	errno = result < 0 ? -result : 0;
	return result < 0 ? -1 : result;
}

#endif
