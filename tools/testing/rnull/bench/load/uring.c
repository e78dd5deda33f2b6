// SPDX-License-Identifier: GPL-2.0
/*
 * I/O by io_uring, without a library: one system call submits a batch, then waits for all of it.
 *
 * File and buffer are registered, as those do who care for speed: otherwise looking them up for each I/O costs more
 * instructions, and more locked ones, than any null driver.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine.h"

/* The rings, shared with the kernel; a process has one. */
static struct {
	int fd;
	struct io_uring_sqe *sqes;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	struct io_uring_cqe *cqes;
	unsigned int *cq_head, *cq_tail, *cq_mask;
} ring;

static char *map(size_t length, off_t what)
{
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, what);

	if (at == MAP_FAILED)
		fail("cannot map the rings: %s", strerror(errno));
	return at;
}

/* Registers the only file or the only buffer, which are known as number 0 then. */
static void hand_over(unsigned int what, const void *it)
{
	if (syscall(SYS_io_uring_register, ring.fd, what, it, 1))
		fail("io_uring_register: %s", strerror(errno));
}

static void uring_open(struct stream *stream)
{
	struct io_uring_params params = { .flags = stream->poll ? IORING_SETUP_IOPOLL : 0 };
	char *sq, *cq;

	ring.fd = syscall(SYS_io_uring_setup, stream->batch, &params);
	if (ring.fd < 0)
		fail("io_uring_setup: %s", strerror(errno));
	sq = map(params.sq_off.array + params.sq_entries * sizeof(unsigned int), IORING_OFF_SQ_RING);
	cq = map(params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring.sqes = (void *)map(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring.sq_tail = (void *)(sq + params.sq_off.tail);
	ring.sq_mask = (void *)(sq + params.sq_off.ring_mask);
	ring.sq_array = (void *)(sq + params.sq_off.array);
	ring.cqes = (void *)(cq + params.cq_off.cqes);
	ring.cq_head = (void *)(cq + params.cq_off.head);
	ring.cq_tail = (void *)(cq + params.cq_off.tail);
	ring.cq_mask = (void *)(cq + params.cq_off.ring_mask);
	hand_over(IORING_REGISTER_FILES, &stream->fd);
	hand_over(IORING_REGISTER_BUFFERS, &(struct iovec){ stream->buffer, stream->size });
}

static void queue_one(struct stream *stream)
{
	unsigned int tail = *ring.sq_tail, index = tail & *ring.sq_mask;

	ring.sqes[index] = (struct io_uring_sqe){
		.opcode = stream->write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED,
		.flags = IOSQE_FIXED_FILE,
		.off = next_offset(stream),
		.addr = (uintptr_t)stream->buffer,
		.len = stream->size,
	};
	ring.sq_array[index] = index;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static unsigned int reap(struct stream *stream)
{
	unsigned int head = *ring.cq_head, tail = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE), n = 0;

	for (; head != tail; head++, n++) {
		int done = ring.cqes[head & *ring.cq_mask].res;

		if (done != (int)stream->size)
			fail("I/O of %zu bytes: %s", stream->size, done < 0 ? strerror(-done) : "short");
	}
	__atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
	return n;
}

static void uring_run(struct stream *stream, unsigned long count)
{
	while (count) {
		unsigned int batch = count < stream->batch ? count : stream->batch, submit = batch, reaped = 0;

		for (unsigned int i = 0; i < batch; i++)
			queue_one(stream);
		while (reaped < batch) {
			int done = syscall(SYS_io_uring_enter, ring.fd, submit, batch - reaped, IORING_ENTER_GETEVENTS,
					   NULL, 0);

			if (done < 0)
				fail("io_uring_enter: %s", strerror(errno));
			submit -= done;
			reaped += reap(stream);
		}
		count -= batch;
	}
}

const struct engine uring_engine = { "uring", uring_open, uring_run };
