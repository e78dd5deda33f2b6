/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A ring of io_uring whose ends are polled for.
 */
#ifndef RING_H
#define RING_H

#include <errno.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
	int fd;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail, sq_mask, cq_mask;
};

/* ring_map: some memory of the ring, or of none if there is no file; null if there is none. */
static inline char *ring_map(size_t length, int fd, off_t offset)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, offset);

	return at == MAP_FAILED ? NULL : at;
}

/* ring_set_up: makes a ring for so many transfers; false, with errno, if there is none. */
static inline bool ring_set_up(struct ring *ring, unsigned int entries)
{
	struct io_uring_params with = { .flags = IORING_SETUP_IOPOLL };
	char *sq, *cq;

	ring->fd = syscall(SYS_io_uring_setup, entries, &with);
	if (ring->fd < 0)
		return false;
	sq = ring_map(with.sq_off.array + with.sq_entries * sizeof(*ring->sq_array), ring->fd, IORING_OFF_SQ_RING);
	cq = ring_map(with.cq_off.cqes + with.cq_entries * sizeof(*ring->cqes), ring->fd, IORING_OFF_CQ_RING);
	ring->sqes = (void *)ring_map(with.sq_entries * sizeof(*ring->sqes), ring->fd, IORING_OFF_SQES);
	if (!sq || !cq || !ring->sqes)
		return false;
	ring->sq_tail = (void *)(sq + with.sq_off.tail);
	ring->sq_array = (void *)(sq + with.sq_off.array);
	ring->sq_mask = *(unsigned int *)(sq + with.sq_off.ring_mask);
	ring->cqes = (void *)(cq + with.cq_off.cqes);
	ring->cq_head = (void *)(cq + with.cq_off.head);
	ring->cq_tail = (void *)(cq + with.cq_off.tail);
	ring->cq_mask = *(unsigned int *)(cq + with.cq_off.ring_mask);
	return true;
}

/* ring_push: has a transfer wait until the ring is entered. */
static inline void ring_push(struct ring *ring, const struct io_uring_sqe *sqe)
{
	unsigned int tail = *ring->sq_tail, slot = tail & ring->sq_mask;

	ring->sqes[slot] = *sqe;
	ring->sq_array[slot] = slot;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

/* ring_enter: sends so many transfers, and polls until as many ends are there as are asked for. */
static inline int ring_enter(const struct ring *ring, unsigned int send, unsigned int ends, unsigned int flags)
{
	return syscall(SYS_io_uring_enter, ring->fd, send, ends, flags, NULL, 0);
}

/* ring_pop: takes the next end that is there; false if there is none. */
static inline bool ring_pop(struct ring *ring, struct io_uring_cqe *end)
{
	if (*ring->cq_head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		return false;
	*end = ring->cqes[*ring->cq_head & ring->cq_mask];
	__atomic_store_n(ring->cq_head, *ring->cq_head + 1, __ATOMIC_RELEASE);
	return true;
}

#endif
