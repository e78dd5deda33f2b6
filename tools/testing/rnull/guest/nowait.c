// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to a disk with RWF_NOWAIT.
 *
 * usage: nowait write DISK OFFSET BYTES       one call of pwritev2, with RWF_NOWAIT
 *        nowait uring DISK OFFSET BYTES       one write of io_uring, with RWF_NOWAIT
 *        nowait again DISK OFFSET BYTES       the same without; io_uring submits it again, from a
 *                                             worker, if it cannot be done at once
 *        nowait fill DISK OFFSET BYTES        64 KiB each, until one fails; then discards all: a line
 *                                             with the error, the bytes written, the other result
 *
 * Each writes zeros. `fill` also frees memory of its own as soon as a write has failed, so that
 * nothing else runs out of it.
 */
#include <liburing.h>

#include "util.h"

enum { STEP = 65536, RESERVE = 64 << 20 };

static const char *whole(ssize_t done, size_t bytes)
{
	return done < 0 || (size_t)done == bytes ? verdict(done) : "short";
}

static const char *uring(int disk, uint64_t offset, size_t bytes, int flags)
{
	void *data = alloc_pages(bytes);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	errno = -io_uring_queue_init(1, &ring, 0);
	if (errno)
		die("io_uring_queue_init: %s", verdict(-1));
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_write(sqe, disk, data, bytes, offset);
	sqe->rw_flags = flags;
	if (io_uring_submit_and_wait(&ring, 1) != 1 || io_uring_peek_cqe(&ring, &cqe))
		die("io_uring_submit_and_wait: %s", verdict(-1));
	errno = cqe->res < 0 ? -cqe->res : 0;
	return whole(cqe->res, bytes);
}

static void fill(int disk, uint64_t offset, uint64_t bytes)
{
	struct iovec data = { alloc_pages(STEP), STEP };
	void *reserve = alloc_pages(RESERVE);
	uint64_t done = 0, range[2];
	ssize_t now = STEP;
	const char *said;

	for (; now == STEP && done < bytes; done += STEP)
		now = pwritev2(disk, &data, 1, offset + done, RWF_NOWAIT);
	said = whole(now, STEP);
	munmap(reserve, RESERVE);
	done -= now == STEP ? 0 : STEP;
	range[0] = offset;
	range[1] = done;
	printf("%s %lu %s\n", said, done, verdict(ioctl(disk, BLKDISCARD, range)));
}

int main(int count, char **words)
{
	const char *command = count == 5 ? words[1] : "";
	uint64_t offset, bytes;
	struct iovec data;
	int disk;

	if (count != 5)
		die("usage: nowait write|uring|again|fill DISK OFFSET BYTES");
	disk = open_direct(words[2], O_WRONLY);
	offset = strtoull(words[3], NULL, 0);
	bytes = strtoull(words[4], NULL, 0);
	if (!strcmp(command, "write")) {
		data = (struct iovec){ alloc_pages(bytes), bytes };
		puts(whole(pwritev2(disk, &data, 1, offset, RWF_NOWAIT), bytes));
	} else if (!strcmp(command, "uring")) {
		puts(uring(disk, offset, bytes, RWF_NOWAIT));
	} else if (!strcmp(command, "again")) {
		puts(uring(disk, offset, bytes, 0));
	} else if (!strcmp(command, "fill")) {
		fill(disk, offset, bytes);
	} else {
		die("nowait: no command '%s'", command);
	}
	return 0;
}
