// SPDX-License-Identifier: GPL-2.0
/*
 * I/O by pread, pwrite, or the discard ioctl: one at a time.
 */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine.h"

static void nothing_to_open(struct stream *stream)
{
	if (stream->batch != 1 || stream->poll)
		fail("only io_uring has batches and polling");
}

static void psync_run(struct stream *stream, unsigned long count)
{
	while (count--) {
		uint64_t offset = next_offset(stream);
		ssize_t done;

		if (stream->write)
			done = pwrite(stream->fd, stream->buffer, stream->size, offset);
		else
			done = pread(stream->fd, stream->buffer, stream->size, offset);
		if (done != (ssize_t)stream->size)
			fail("I/O of %zu bytes at %llu: %s", stream->size, (unsigned long long)offset,
			     done < 0 ? strerror(errno) : "short");
	}
}

static void discard_run(struct stream *stream, unsigned long count)
{
	while (count--) {
		uint64_t range[2] = { next_offset(stream), stream->size };

		if (ioctl(stream->fd, BLKDISCARD, range))
			fail("discard at %llu: %s", (unsigned long long)range[0], strerror(errno));
	}
}

const struct engine psync_engine = { "psync", nothing_to_open, psync_run };
const struct engine discard_engine = { "discard", nothing_to_open, discard_run };
