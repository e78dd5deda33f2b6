/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the test programs of the guests share.
 *
 * Every command reports on one line; the result of a system call is `ok` or the name of its errno.
 */
#ifndef RNULL_UTIL_H
#define RNULL_UTIL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...)
{
	va_list args;

	/* Another thread that dies at the same time waits here for the exit. */
	flockfile(stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

static inline const char *verdict(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

/* open_direct: opens a disk for I/O that bypasses the page cache. */
static inline int open_direct(const char *path, int flags)
{
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC);

	if (fd < 0)
		die("open %s: %s", path, verdict(-1));
	return fd;
}

/* alloc_pages: memory for direct I/O, zeroed and present. */
static inline void *alloc_pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED)
		die("mmap: %s", verdict(-1));
	return at;
}

/* random_below: the next of the pseudorandom numbers (splitmix64) that follow from a state. */
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (z ^ z >> 31) % bound;
}

static inline long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline pthread_t start_thread(void *(*body)(void *), void *arg)
{
	pthread_t id;

	if (pthread_create(&id, NULL, body, arg))
		die("pthread_create");
	return id;
}

/* write_file: writes a text to a file in one call; a short write is an EIO. */
static inline long write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), saved;
	ssize_t done = fd < 0 ? -1 : write(fd, text, strlen(text));

	saved = done < 0 ? errno : EIO;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return done == (ssize_t)strlen(text) ? 0 : -1;
}

/* read_file: the first line of a file of 4095 bytes at most, or NULL. */
static inline char *read_file(const char *path, char text[4096])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), saved;
	long length = fd < 0 ? fd : read(fd, text, 4095);

	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	if (length < 0)
		return NULL;
	text[length] = 0;
	text[strcspn(text, "\n")] = 0;
	return text;
}

#endif
