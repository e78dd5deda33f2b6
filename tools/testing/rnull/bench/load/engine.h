/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a way of doing I/O has to offer: `run` does a number of I/Os of one kind at the offsets it is given.
 */
#ifndef RNULL_ENGINE_H
#define RNULL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One stream of I/O to one device. */
struct stream {
	int fd;
	char *buffer;		/* one I/O's data, aligned to 4096; every I/O of the stream uses it */
	size_t size;		/* of an I/O, in bytes */
	bool write;
	unsigned int batch;	/* I/Os submitted and awaited together */
	bool poll;
	uint64_t start, span;	/* the range, in bytes */
	bool sequential;
	uint64_t state;		/* of next_offset */
};

/* The offset of the stream's next I/O: always the same for the same seed. */
uint64_t next_offset(struct stream *stream);

/* Prints why and ends the program. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

struct engine {
	const char *name;
	void (*open)(struct stream *stream);
	void (*run)(struct stream *stream, unsigned long count);
};

extern const struct engine psync_engine, uring_engine, discard_engine;

#endif
