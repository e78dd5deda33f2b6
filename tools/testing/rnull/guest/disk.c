// SPDX-License-Identifier: GPL-2.0
/*
 * Reads or writes a disk directly, also through buffers that are cut anywhere.
 */
#define _GNU_SOURCE
#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util.h"
#include "direct.h"

#define PAGE 4096

/* A fixed sequence of numbers for each seed. */
static uint64_t numbers;

static uint64_t number(uint64_t below)
{
	numbers ^= numbers << 13;
	numbers ^= numbers >> 7;
	numbers ^= numbers << 17;
	return numbers % below;
}

/* The byte that belongs at an offset when the disk was written with a seed. */
static unsigned char pattern(uint64_t offset, unsigned int seed)
{
	uint64_t x = (offset / 8 + 1) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;

	return (x ^ x >> 29) >> (offset % 8 * 8);
}

/*
 * fill DISK SEED OFFSET BYTES | check DISK SEED OFFSET BYTES | zeros DISK OFFSET BYTES
 *
 * Writes a pattern all over a range, or expects it there, or expects nothing there.
 */
static int whole(const char *path, char what, unsigned int seed, uint64_t offset,
		 uint64_t bytes)
{
	const size_t step = 65536;
	unsigned char *buffer = memory(step);
	int fd = open_disk(path, what == 'f' ? O_WRONLY : O_RDONLY);
	uint64_t end = offset + bytes;

	for (; offset < end; offset += step) {
		size_t now = end - offset < step ? end - offset : step;

		if (what == 'f') {
			for (size_t i = 0; i < now; i++)
				buffer[i] = pattern(offset + i, seed);
			if (pwrite(fd, buffer, now, offset) != (ssize_t)now)
				die("write at %lu: %s", offset, verdict(-1));
			continue;
		}
		memset(buffer, 0x5a, now);
		if (pread(fd, buffer, now, offset) != (ssize_t)now)
			die("read at %lu: %s", offset, verdict(-1));
		for (size_t i = 0; i < now; i++) {
			unsigned char right = what == 'z' ? 0 : pattern(offset + i, seed);

			if (buffer[i] != right)
				die("byte %lu is %#x instead of %#x", offset + i, buffer[i],
				    right);
		}
	}
	puts("ok");
	return 0;
}

/* Cuts `bytes` of a buffer into pieces, all multiples of `grain` bytes; returns how many. */
static int cut(struct iovec *pieces, int most, unsigned char *buffer, size_t bytes, size_t grain)
{
	int count = 0;

	buffer += number(PAGE / grain) * grain;
	while (bytes) {
		size_t length = (1 + number((bytes < 8192 ? bytes : 8192) / grain)) * grain;

		if (length > bytes || count == most - 1)
			length = bytes;
		pieces[count].iov_base = buffer;
		pieces[count++].iov_len = length;
		buffer += length + number(3) * grain;
		bytes -= length;
	}
	return count;
}

/* Moves bytes between a buffer in pieces, in their order, or one in a row. */
static void copy(struct iovec *pieces, int count, unsigned char *row, bool out)
{
	for (int i = 0; i < count; i++, pieces++) {
		if (out)
			memcpy(pieces->iov_base, row, pieces->iov_len);
		else
			memcpy(row, pieces->iov_base, pieces->iov_len);
		row += pieces->iov_len;
	}
}

/*
 * model DISK BLOCK OPERATIONS SEED [GRAIN]
 *
 * Reads or writes whole blocks through buffers cut anywhere, at least between multiples of GRAIN
 * bytes, which are 2; every byte is checked against a copy in memory. The first MiB of the disk must be unwritten.
 */
static int model(const char *path, size_t block, long operations, uint64_t seed, size_t grain)
{
	enum { SIZE = 1 << 20, PIECES = 24, PIECES_APART = 2 * 512, SLACK = 2 * PAGE + PIECES * PIECES_APART };
	const size_t most = block * 4 < 131072 ? 131072 : block * 4;
	unsigned char *shadow = memory(SIZE), *buffer = memory(most + SLACK), *row = memory(most);
	int fd = open_disk(path, O_RDWR);

	numbers = seed * 2654435761u + 88172645463325252ull;
	for (long i = 0; i < operations; i++) {
		size_t bytes = (1 + number(number(4) ? 4 : most / block)) * block, b;
		uint64_t offset = number((SIZE - bytes) / block + 1) * block;
		struct iovec pieces[PIECES];
		int count = cut(pieces, PIECES, buffer, bytes, grain);
		bool writing = number(2);
		ssize_t done;

		memset(buffer, 0xee, most + SLACK);
		if (writing) {
			for (b = 0; b < bytes; b++)
				row[b] = number(256);
			memcpy(shadow + offset, row, bytes);
			copy(pieces, count, row, true);
			done = pwritev(fd, pieces, count, offset);
		} else {
			done = preadv(fd, pieces, count, offset);
		}
		if (done != (ssize_t)bytes)
			die("operation %ld: %s of %zu at %lu: %zd, %s", i,
			    writing ? "write" : "read", bytes, offset, done, verdict(done));
		copy(pieces, count, row, false);
		for (b = 0; b < bytes && row[b] == shadow[offset + b];)
			b++;
		if (b < bytes)
			die("operation %ld: %zu bytes at %lu, %d pieces: byte %zu is %#x, not %#x",
			    i, bytes, offset, count, b, row[b], shadow[offset + b]);
	}
	puts("ok");
	return 0;
}

/*
 * transfer DISK read|write|durable|discard|flush OFFSET BYTES
 *
 * One direct call; answers a short one with its length. What is written are zeros, durable with FUA.
 */
static int transfer(const char *path, const char *what, uint64_t offset, size_t bytes)
{
	struct iovec piece = { .iov_base = memory(bytes ?: 1), .iov_len = bytes };
	uint64_t range[] = { offset, bytes };
	int fd = open_disk(path, !strcmp(what, "read") ? O_RDONLY : O_WRONLY);
	ssize_t done = -1;

	errno = EINVAL;
	if (!strcmp(what, "read"))
		done = preadv(fd, &piece, 1, offset);
	else if (!strcmp(what, "write"))
		done = pwritev(fd, &piece, 1, offset);
	else if (!strcmp(what, "durable"))
		done = pwritev2(fd, &piece, 1, offset, RWF_DSYNC);
	else if (!strcmp(what, "discard"))
		done = ioctl(fd, BLKDISCARD, range) ? -1 : (ssize_t)bytes;
	else if (!strcmp(what, "flush"))
		done = fsync(fd) ? -1 : (ssize_t)bytes;

	if (done >= 0 && (size_t)done != bytes)
		printf("%zd\n", done);
	else
		puts(verdict(done));
	return 0;
}

#define IS(name, n) (!strcmp(command, name) && arguments == (n))
#define N(i) strtoull(w[i], NULL, 0)

int main(int count, char **words)
{
	const char *command = count > 1 ? words[1] : "";
	char **w = words + 2;
	int arguments = count - 2;

	if (IS("fill", 4) || IS("check", 4))
		return whole(w[0], command[0], N(1), N(2), N(3));
	if (IS("zeros", 3))
		return whole(w[0], 'z', 0, N(1), N(2));
	if (IS("model", 4) || IS("model", 5))
		return model(w[0], N(1), N(2), N(3), arguments == 5 ? N(4) : 2);
	if (IS("transfer", 4))
		return transfer(w[0], w[1], N(2), N(3));
	die("disk: no command '%s' with %d arguments", command, arguments);
}
