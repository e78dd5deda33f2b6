// SPDX-License-Identifier: GPL-2.0
/*
 * Reads, writes, verifies a disk with direct I/O.
 *
 * usage: disk fill DISK SEED OFFSET BYTES       writes a pattern all over a range
 *        disk check DISK SEED OFFSET BYTES      expects it there
 *        disk verify DISK SEED OFFSET BYTES     does both
 *        disk zeros DISK OFFSET BYTES           expects zeros there
 *        disk model DISK BLOCK OPERATIONS SEED [GRAIN]
 *        disk read|write|fua|atomic|discard|flush DISK OFFSET BYTES
 *        disk no-memory write|fua|polled|flush DISK OFFSET BYTES
 */
#include "faults.h"
#include "polled.h"
#include "util.h"

#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x40
#endif

enum { PAGE = 4096, STEP = 65536 };

/* The byte that belongs at an offset when the disk was written with a seed. */
static unsigned char pattern(uint64_t offset, unsigned int seed)
{
	uint64_t x = (offset / 8 + 1) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;

	return (x ^ x >> 29) >> (offset % 8 * 8);
}

static const char *whole(const char *path, char what, unsigned int seed, uint64_t offset,
			 uint64_t bytes)
{
	int fd = open_direct(path, what == 'f' ? O_WRONLY : O_RDONLY);
	unsigned char *right = alloc_pages(STEP), *buffer = alloc_pages(STEP);

	for (uint64_t end = offset + bytes; offset < end; offset += STEP) {
		size_t now = end - offset < STEP ? end - offset : STEP, i = 0;

		for (; i < now; i++)
			right[i] = what == 'z' ? 0 : pattern(offset + i, seed);
		if (what == 'f') {
			if (pwrite(fd, right, now, offset) != (ssize_t)now)
				die("write at %lu: %s", offset, verdict(-1));
			continue;
		}
		memset(buffer, 0x5a, now);
		if (pread(fd, buffer, now, offset) != (ssize_t)now)
			die("read at %lu: %s", offset, verdict(-1));
		for (i = 0; i < now; i++)
			if (buffer[i] != right[i])
				die("byte %lu is %#x instead of %#x", offset + i, buffer[i],
				    right[i]);
	}
	return "ok";
}

/* cut: cuts `bytes` of a buffer into pieces, at multiples of `grain` bytes; returns how many. */
static int cut(uint64_t *random, struct iovec *pieces, int most, unsigned char *buffer,
	       size_t bytes, size_t grain)
{
	int count = 0;

	buffer += random_below(random, PAGE / grain) * grain;
	while (bytes) {
		size_t length = (1 + random_below(random, (bytes < 8192 ? bytes : 8192) / grain)) *
				grain;

		if (length > bytes || count == most - 1)
			length = bytes;
		pieces[count++] = (struct iovec){ buffer, length };
		buffer += length + random_below(random, 3) * grain;
		bytes -= length;
	}
	return count;
}

/*
 * model: reads or writes whole blocks through scattered buffers.
 *
 * The buffers are cut at multiples of GRAIN bytes. Every byte is compared with a copy in memory.
 * The first MiB of the disk must be unwritten.
 */
static const char *model(const char *path, size_t block, long operations, uint64_t random,
			 size_t grain)
{
	enum { SIZE = 1 << 20, PIECES = 24 };
	const size_t most = block * 4 < 131072 ? 131072 : block * 4;
	const size_t slack = 2 * PAGE + PIECES * 2 * grain;
	unsigned char *shadow = alloc_pages(SIZE), *buffer = alloc_pages(most + slack);
	int fd = open_direct(path, O_RDWR);

	for (long i = 0; i < operations; i++) {
		uint64_t longest = random_below(&random, 4) ? 4 : most / block;
		size_t bytes = (1 + random_below(&random, longest)) * block, b;
		uint64_t offset = random_below(&random, (SIZE - bytes) / block + 1) * block;
		unsigned char *copy = shadow + offset;
		struct iovec pieces[PIECES];
		int count = cut(&random, pieces, PIECES, buffer, bytes, grain);
		bool writing = random_below(&random, 2);
		ssize_t done;

		memset(buffer, 0xee, most + slack);
		if (writing)
			for (b = 0; b < bytes; b++)
				copy[b] = random_below(&random, 256);
		for (int p = 0; writing && p < count; copy += pieces[p++].iov_len)
			memcpy(pieces[p].iov_base, copy, pieces[p].iov_len);
		done = (writing ? pwritev : preadv)(fd, pieces, count, offset);
		if (done != (ssize_t)bytes)
			die("operation %ld: %s of %zu at %lu: %zd, %s", i,
			    writing ? "write" : "read", bytes, offset, done, verdict(done));
		copy = shadow + offset;
		for (int p = 0; p < count; copy += pieces[p++].iov_len)
			if (memcmp(pieces[p].iov_base, copy, pieces[p].iov_len))
				die("operation %ld: %s of %zu at %lu: piece %d of %d differs", i,
				    writing ? "write" : "read", bytes, offset, p, count);
	}
	return "ok";
}

/*
 * transfer: one system call; a short one is reported with its length.
 *
 * A write is of zeros; `polled` is one of io_uring to a polled queue. With `no_memory` all
 * allocations of pages in the whole system fail meanwhile, and those from the slabs that are marked,
 * since another task may queue the request.
 */
static const char *transfer(const char *what, bool no_memory, const char *path, uint64_t offset,
			    size_t bytes)
{
	struct iovec data = { alloc_pages(bytes ?: 1), bytes };
	uint64_t range[] = { offset, bytes };
	static char text[32];
	bool polled = !strcmp(what, "polled");
	int fd = open_direct(path, polled ? O_RDWR : *what == 'r' ? O_RDONLY : O_WRONLY);
	struct polled_write polling;
	const char *said;
	ssize_t done = -1;

	if (polled)
		prepare_polled_write(&polling, path, fd, data.iov_base, bytes, offset);
	errno = EINVAL;
	if (no_memory)
		fail_allocations("100");
	if (!strcmp(what, "read"))
		done = preadv(fd, &data, 1, offset);
	else if (!strcmp(what, "write"))
		done = pwritev(fd, &data, 1, offset);
	else if (polled)
		done = do_polled_write(&polling);
	else if (!strcmp(what, "fua"))
		done = pwritev2(fd, &data, 1, offset, RWF_DSYNC);
	else if (!strcmp(what, "atomic"))
		done = pwritev2(fd, &data, 1, offset, RWF_ATOMIC);
	else if (!strcmp(what, "discard"))
		done = ioctl(fd, BLKDISCARD, range) ? -1 : (ssize_t)bytes;
	else if (!strcmp(what, "flush"))
		done = fsync(fd) ? -1 : (ssize_t)bytes;
	said = verdict(done);
	if (no_memory)
		fail_allocations("0");
	if (done < 0 || (size_t)done == bytes)
		return said;
	snprintf(text, sizeof(text), "%zd", done);
	return text;
}

#define IS(name, n) (!strcmp(command, name) && arguments == (n))
#define N(i) strtoull(w[i], NULL, 0)

int main(int count, char **words)
{
	const char *command = count > 1 ? words[1] : "";
	char **w = words + 2;
	int arguments = count - 2;

	if (IS("fill", 4) || IS("check", 4))
		puts(whole(w[0], command[0], N(1), N(2), N(3)));
	else if (IS("verify", 4))
		whole(w[0], 'f', N(1), N(2), N(3)), puts(whole(w[0], 'c', N(1), N(2), N(3)));
	else if (IS("zeros", 3))
		puts(whole(w[0], 'z', 0, N(1), N(2)));
	else if (IS("model", 4) || IS("model", 5))
		puts(model(w[0], N(1), N(2), N(3), arguments == 5 ? N(4) : 2));
	else if (IS("no-memory", 4))
		puts(transfer(w[0], true, w[1], N(2), N(3)));
	else if (arguments == 3)
		puts(transfer(command, false, w[0], N(1), N(2)));
	else
		die("disk: no command '%s' with %d arguments", command, arguments);
	return 0;
}
