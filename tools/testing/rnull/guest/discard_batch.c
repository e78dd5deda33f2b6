// SPDX-License-Identifier: GPL-2.0
/*
 * Discards several ranges at once, which the kernel may merge into one request.
 *
 * usage: discard_batch DISK COUNT BYTES STRIDE      the first begins at the disk's start
 */
#include <liburing.h>

#include "util.h"

int main(int argc, char **argv)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	uint64_t bytes, stride;
	int fd, count, done;

	if (argc != 5)
		die("usage: discard_batch DISK COUNT BYTES STRIDE");
	fd = open_direct(argv[1], O_RDWR);
	count = atoi(argv[2]);
	bytes = strtoull(argv[3], NULL, 10);
	stride = strtoull(argv[4], NULL, 10);
	if (io_uring_queue_init(count, &ring, 0))
		die("io_uring_queue_init");
	for (int i = 0; i < count; i++)
		io_uring_prep_cmd_discard(io_uring_get_sqe(&ring), fd, i * stride, bytes);
	if (io_uring_submit(&ring) != count)
		die("io_uring_submit");
	for (done = 0; done < count; done++) {
		if (io_uring_wait_cqe(&ring, &cqe))
			die("io_uring_wait_cqe");
		if (cqe->res < 0)
			die("%s", strerrorname_np(-cqe->res));
		io_uring_cqe_seen(&ring, cqe);
	}
	printf("ok\n");
	return 0;
}
