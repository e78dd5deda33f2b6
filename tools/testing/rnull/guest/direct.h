/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What it takes to read a disk past the page cache.
 */
#ifndef RNULL_DIRECT_H
#define RNULL_DIRECT_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "util.h"

static inline int open_disk(const char *path, int flags)
{
	int fd = open(path, flags | O_DIRECT);

	if (fd < 0)
		die("open %s: %s", path, verdict(-1));
	return fd;
}

static inline void *memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED)
		die("mmap: %s", verdict(-1));
	return at;
}

#endif
