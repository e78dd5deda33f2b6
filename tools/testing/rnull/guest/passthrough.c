// SPDX-License-Identifier: GPL-2.0
/*
 * Commands for NVMe controllers that a user makes, by ioctls of a disk; prints what each returns.
 *
 * usage: passthrough COMMAND DISK [ARGUMENT...]
 *   play BLOCK SEED COUNT   of all kinds, valid ones and others, then COUNT random ones
 *   plain BLOCK             those of a user who has opened the disk, but is no administrator
 *   compat BLOCK            those of a task with an ABI of 32 bits, on x86
 *   bounds BLOCK            those that are to be refused, as they would leave the memory they have
 *   format LBAF [MILLISECONDS]
 *                           has the namespace formatted, which may take as long as that
 *   storm MILLISECONDS SEED BLOCK
 *                           random ones by some threads, with signals, until the disk is gone
 *   faults COUNT            so many at once that identify the controller, whose memory is the disk
 *                           itself, from 8 MiB on, so that the driver waits for page faults
 *
 * What is printed of a command is the result of the system call, the result of the command, and a
 * hash of the memory around its data.
 */
#include <linux/blkpg.h>
#include <linux/nvme_ioctl.h>
#include <signal.h>
#include <stddef.h>

#include "util.h"

enum { PAGE = 4096, ROOM = 192 << 10, MARGIN = PAGE, THREADS = 4 };

static int disk;
static unsigned int block;
static uint32_t nsid;
static char *room;
static bool prints_result = true, prints_data = true;

static uint64_t hash(const char *at, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	while (len--)
		hash = (hash ^ (unsigned char)*at++) * 0x100000001b3;
	return hash;
}

static void print(const char *name, long returned, uint64_t result)
{
	if (returned < 0)
		printf("%s: %s", name, verdict(returned));
	else
		printf("%s: %#lx", name, returned);
	if (prints_result)
		printf(" result %#llx", (unsigned long long)result);
	if (prints_data)
		printf(" data %016llx", (unsigned long long)hash(room, ROOM + 2 * MARGIN));
	putchar('\n');
	prints_result = true;
	prints_data = true;
}

/* at: memory with that offset in a page, behind a margin. */
static uint64_t at(unsigned int offset)
{
	return (uintptr_t)room + MARGIN + offset;
}

static void fill(unsigned char seed)
{
	for (size_t i = 0; i < ROOM + 2 * MARGIN; i++)
		room[i] = (i * 7 + i / 256 + seed) & 0xff;
}

/* send: executes a command by one of the two ioctls with the layout of 32 bits, or by the others. */
static void send(const char *name, bool admin, bool wide, struct nvme_passthru_cmd64 command)
{
	struct nvme_passthru_cmd narrow;
	long returned;

	if (wide) {
		command.result = ~0ull;
		returned = ioctl(disk, admin ? NVME_IOCTL_ADMIN64_CMD : NVME_IOCTL_IO64_CMD, &command);
		print(name, returned, command.result);
		return;
	}
	memcpy(&narrow, &command, offsetof(struct nvme_passthru_cmd, result));
	narrow.result = ~0u;
	returned = ioctl(disk, admin ? NVME_IOCTL_ADMIN_CMD : NVME_IOCTL_IO_CMD, &narrow);
	print(name, returned, narrow.result);
}

#define admin(name, ...) send(name, true, false, (struct nvme_passthru_cmd64){ __VA_ARGS__ })
#define admin64(name, ...) send(name, true, true, (struct nvme_passthru_cmd64){ __VA_ARGS__ })
#define io_of(name, of, ...) send(name, false, false, (struct nvme_passthru_cmd64){ .nsid = of, __VA_ARGS__ })
#define io(name, ...) io_of(name, nsid, __VA_ARGS__)
#define io64(name, ...) send(name, false, true, (struct nvme_passthru_cmd64){ .nsid = nsid, __VA_ARGS__ })

static void submit(const char *name, struct nvme_user_io io)
{
	print(name, ioctl(disk, NVME_IOCTL_SUBMIT_IO, &io), 0);
}

static void *mapping(int protection)
{
	void *page = mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap: %s", verdict(-1));
	return page;
}

static void identify(void)
{
	static const uint32_t nsids[] = { 0, 1, 2, 5, 7, 100, 200, 1025, ~0u };
	char name[64];

	for (uint32_t cns = 0; cns < 0x20; cns++) {
		for (size_t i = 0; i < sizeof(nsids) / sizeof(*nsids); i++) {
			fill(cns);
			snprintf(name, sizeof(name), "identify %#x %#x", cns, nsids[i]);
			admin(name, .opcode = 6, .nsid = nsids[i], .addr = at(0), .data_len = 4096,
			      .cdw10 = cns);
		}
	}
	for (unsigned int offset = 0; offset < PAGE; offset += offset < 8 ? 1 : 509) {
		fill(1);
		snprintf(name, sizeof(name), "identify at %u", offset);
		admin64(name, .opcode = 6, .addr = at(offset), .data_len = 4096, .cdw10 = 1);
	}
	fill(2);
	admin("identify, longer memory", .opcode = 6, .addr = at(0), .data_len = 3 * PAGE, .cdw10 = 1);
	admin("identify, the longest memory", .opcode = 6, .addr = at(0), .data_len = 128 << 10, .cdw10 = 1);
	admin("identify, too long memory", .opcode = 6, .addr = at(0), .data_len = 132 << 10, .cdw10 = 1);
	admin("identify, far too long memory", .opcode = 6, .addr = at(0), .data_len = ~0u, .cdw10 = 1);
	admin("identify, flags", .opcode = 6, .flags = 1, .addr = at(0), .data_len = 4096, .cdw10 = 1);
	admin("identify, metadata", .opcode = 6, .addr = at(0), .data_len = 4096, .cdw10 = 1,
	      .metadata = at(PAGE), .metadata_len = 8);
	admin("identify, a timeout", .opcode = 6, .addr = at(0), .data_len = 4096, .cdw10 = 1,
	      .timeout_ms = 9000);
}

static void logs(void)
{
	static const unsigned int lengths[] = { 4, 512, 4096, 8192, 16384 };
	char name[64];

	for (unsigned int id = 0; id < 0x20; id++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			/* Errors, and what the controller counts, depend on what was done before. */
			prints_data = id > 2;
			fill(id);
			snprintf(name, sizeof(name), "log %#x %u", id, lengths[i]);
			admin(name, .opcode = 2, .nsid = ~0u, .addr = at(0), .data_len = lengths[i],
			      .cdw10 = id | (lengths[i] / 4 - 1) << 16);
		}
	}
}

static void features(void)
{
	char name[64];

	for (unsigned int id = 0; id < 0x20; id++) {
		/* The events are those that the driver wants. Time passes. */
		prints_result = id != 0xb && id != 0xe;
		prints_data = id != 0xe;
		fill(id);
		snprintf(name, sizeof(name), "get feature %#x", id);
		admin64(name, .opcode = 0xa, .nsid = nsid, .addr = at(0), .data_len = 4096, .cdw10 = id);
	}
	for (unsigned int id = 0; id < 5; id++) {
		static const unsigned char of_driver[] = { 0x07, 0x0c, 0x0d, 0x0f, 0x16 };

		snprintf(name, sizeof(name), "set feature %#x", of_driver[id]);
		admin(name, .opcode = 9, .addr = at(0), .data_len = 4096, .cdw10 = of_driver[id]);
	}
	admin("set the temperature", .opcode = 9, .cdw10 = 4, .cdw11 = 0x157);
	admin("get the temperature", .opcode = 0xa, .cdw10 = 4);
}

static void blocks(void)
{
	uint32_t ranges[8] = { 0, 4, 16, 0, 0, 4, 24, 0 };
	struct nvme_user_io read = { .opcode = 2, .addr = at(0), .nblocks = 3, .slba = 8 };
	char name[64];

	for (unsigned int offset = 0; offset < PAGE; offset += offset < 8 ? 1 : 509) {
		fill(offset);
		snprintf(name, sizeof(name), "write from %u", offset);
		io(name, .opcode = 1, .addr = at(offset), .data_len = 4 * block, .cdw10 = 8, .cdw12 = 3);
		fill(0);
		snprintf(name, sizeof(name), "read to %u", offset);
		io64(name, .opcode = 2, .addr = at(offset), .data_len = 4 * block, .cdw10 = 8, .cdw12 = 3);
	}
	io("compare", .opcode = 5, .addr = at(PAGE - 2), .data_len = 4 * block, .cdw10 = 8, .cdw12 = 3);
	fill(3);
	io("compare, different", .opcode = 5, .addr = at(0), .data_len = 4 * block, .cdw10 = 8, .cdw12 = 3);
	io("read behind the end", .opcode = 2, .addr = at(0), .data_len = block, .cdw10 = ~0u);
	io("read far behind the end", .opcode = 2, .addr = at(0), .data_len = block, .cdw10 = ~0u, .cdw11 = ~0u);
	io("read of the most", .opcode = 2, .addr = at(0), .data_len = 128 << 10, .cdw10 = 0,
	   .cdw12 = (128 << 10) / block - 1);
	io("read of too much", .opcode = 2, .addr = at(0), .data_len = 256 << 10, .cdw10 = 0,
	   .cdw12 = (256 << 10) / block - 1);
	io("flush", .opcode = 0);
	io("write zeroes", .opcode = 8, .cdw10 = 9, .cdw12 = 1);
	io("verify", .opcode = 0xc, .cdw10 = 0, .cdw12 = 7);
	memcpy(room + MARGIN, ranges, sizeof(ranges));
	io("deallocate", .opcode = 9, .addr = at(0), .data_len = sizeof(ranges), .cdw10 = 1, .cdw11 = 4);
	fill(4);
	io("read", .opcode = 2, .addr = at(0), .data_len = 8 * block, .cdw10 = 8, .cdw12 = 7);
	io("a vendor's command", .opcode = 0x91);
	io("no command", .opcode = 0x5c);
	io("flags", .opcode = 0, .flags = 0x40);
	io("metadata", .opcode = 2, .addr = at(0), .data_len = block, .metadata = at(PAGE), .metadata_len = 8);
	io_of("another namespace", nsid + 1, .opcode = 0);
	io_of("all namespaces", ~0u, .opcode = 0);
	io_of("no namespace", 0, .opcode = 0);

	fill(5);
	submit("submit read", read);
	read.opcode = 5;
	submit("submit compare", read);
	read.opcode = 1;
	fill(6);
	submit("submit write", read);
	read.opcode = 2;
	read.addr++;
	fill(7);
	submit("submit read to an odd address", read);
	read.flags = 1;
	submit("submit with flags", read);
	read.flags = 0;
	read.opcode = 8;
	submit("submit another command", read);
	read.opcode = 2;
	read.control = 1 << 13;
	submit("submit with protection", read);
	read.metadata = at(0);
	submit("submit with metadata", read);
	read.control = 0;
	read.metadata = 0;
	read.slba = ~0ull;
	submit("submit behind the end", read);
}

static void pointers(void)
{
	char *page = mapping(PROT_READ | PROT_WRITE), *gap = mapping(PROT_READ | PROT_WRITE);
	static const int commands[] = { NVME_IOCTL_ADMIN_CMD, NVME_IOCTL_IO_CMD, NVME_IOCTL_ADMIN64_CMD,
		NVME_IOCTL_IO64_CMD, NVME_IOCTL_SUBMIT_IO };
	struct nvme_passthru_cmd *command = (void *)page;
	char *constant = mapping(PROT_READ);

	munmap(gap, PAGE);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		print("no command", ioctl(disk, commands[i], NULL), 0);
		print("a command that is not there", ioctl(disk, commands[i], gap), 0);
		print("a kernel's command", ioctl(disk, commands[i], 0xffff888000000000), 0);
	}
	for (unsigned int odd = 0; odd < 2; odd++)
		io("from a gap", .opcode = 1, .addr = (uintptr_t)gap + odd, .data_len = block, .cdw10 = 8);
	admin("to a gap", .opcode = 6, .addr = (uintptr_t)gap, .data_len = 4096, .cdw10 = 1);
	admin("to the kernel", .opcode = 6, .addr = 0xffff888000000000, .data_len = 4096, .cdw10 = 1);
	admin("to the kernel, odd", .opcode = 6, .addr = 0xffff888000000001, .data_len = 4096, .cdw10 = 1);
	io("to a gap", .opcode = 2, .addr = (uintptr_t)gap, .data_len = block, .cdw10 = 8);
	admin("to a constant", .opcode = 6, .addr = (uintptr_t)constant, .data_len = 4096, .cdw10 = 1);
	io("from a constant", .opcode = 1, .addr = (uintptr_t)constant, .data_len = block, .cdw10 = 8);
	*command = (struct nvme_passthru_cmd){ .opcode = 6, .addr = at(0), .data_len = 4096, .cdw10 = 1 };
	mprotect(page, PAGE, PROT_READ);
	print("a result to a constant", ioctl(disk, NVME_IOCTL_ADMIN_CMD, page), command->result);
	print("the number", ioctl(disk, NVME_IOCTL_ID), 0);
	print("a reset of a disk", ioctl(disk, NVME_IOCTL_RESET), 0);
	print("a scan of a disk", ioctl(disk, NVME_IOCTL_RESCAN), 0);
	print("no ioctl", ioctl(disk, _IO('N', 0x60)), 0);
	print("no ioctl of NVMe", ioctl(disk, _IO('Q', 0x41)), 0);
	munmap(page, PAGE);
	munmap(constant, PAGE);
}

static void at_random(uint64_t *state)
{
	unsigned int count = 1 + random_below(state, 16), offset = random_below(state, PAGE);
	uint32_t first = random_below(state, 256);
	unsigned int what = random_below(state, 8);
	struct nvme_user_io user;
	char name[64];

	if (random_below(state, 2))
		offset &= ~3u;
	if (random_below(state, 16) == 0)
		first = ~0u - first;
	fill(random_below(state, 256));
	snprintf(name, sizeof(name), "%u of %u at %#x, %#x", what, count, first, offset);
	switch (what) {
	case 0:
		admin(name, .opcode = 6, .nsid = random_below(state, 300), .addr = at(offset),
		      .data_len = 4096, .cdw10 = random_below(state, 32));
		break;
	case 1:
		user = (struct nvme_user_io){
			.opcode = 1 + random_below(state, 2),
			.addr = at(offset),
			.nblocks = count - 1,
			.slba = first,
		};
		submit(name, user);
		break;
	case 2:
		send(name, false, random_below(state, 2), (struct nvme_passthru_cmd64){
			.nsid = nsid, .opcode = 5, .addr = at(offset), .data_len = count * block,
			.cdw10 = first, .cdw12 = count - 1 });
		break;
	case 3:
		io(name, .opcode = 8, .cdw10 = first, .cdw12 = count - 1);
		break;
	default:
		send(name, false, random_below(state, 2), (struct nvme_passthru_cmd64){
			.nsid = nsid, .opcode = 1 + random_below(state, 2), .addr = at(offset),
			.data_len = count * block, .cdw10 = first, .cdw12 = count - 1 });
	}
}

static void play(uint64_t seed, unsigned int count)
{
	identify();
	logs();
	features();
	blocks();
	pointers();
	admin("no administrative command", .opcode = 0x7b);
	admin("a vendor's administrative command", .opcode = 0xc1);
	admin("abort", .opcode = 8, .cdw10 = 0x12340001);
	while (count--)
		at_random(&seed);
}

/* partition: opens a partition of the disk. */
static int partition(const char *path, int number)
{
	struct blkpg_partition part = { .start = number << 20, .length = 1 << 20, .pno = number };
	struct blkpg_ioctl_arg add = { .op = BLKPG_ADD_PARTITION, .datalen = sizeof(part), .data = &part };
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%sp%d", path, number);
	if (ioctl(disk, BLKPG, &add))
		die("partition: %s", verdict(-1));
	fd = open(name, O_RDWR);
	if (fd < 0)
		die("open %s: %s", name, verdict(-1));
	return fd;
}

static void become_plain(void)
{
	if (setresuid(65534, 65534, 65534))
		die("setresuid: %s", verdict(-1));
}

/* plain: for reading, then for writing too, then a partition. */
static void plain(const char *path)
{
	char name[64];
	int fds[3];

	fds[2] = partition(path, 1);
	fds[0] = open(path, O_RDONLY);
	fds[1] = open(path, O_RDWR);
	if (fds[0] < 0 || fds[1] < 0)
		die("open: %s", verdict(-1));
	disk = fds[2];
	io("as root, partition: read", .opcode = 2, .addr = at(0), .data_len = block);
	admin("as root, partition: identify", .opcode = 6, .addr = at(0), .data_len = 4096, .cdw10 = 1);
	disk = fds[0];
	io("as root, for reading: write", .opcode = 1, .addr = at(0), .data_len = block);
	become_plain();
	for (int i = 0; i < 3; i++) {
		disk = fds[i];
		printf("opened as %d\n", i);
		for (unsigned int opcode = 0; opcode < 0x20; opcode++) {
			/* Of which the driver does not know how much it moves. */
			if (opcode > 9 && opcode != 0xc)
				continue;
			fill(opcode);
			snprintf(name, sizeof(name), "command %#x", opcode);
			/* C's driver does not look for partitions with the layout of 32 bits. */
			if (i == 2)
				io64(name, .opcode = opcode, .addr = at(0), .data_len = 4096, .cdw10 = 8);
			else
				io(name, .opcode = opcode, .addr = at(0), .data_len = 4096, .cdw10 = 8);
		}
		io("a vendor's command", .opcode = 0x91);
		submit("submit read", (struct nvme_user_io){ .opcode = 2, .addr = at(0) });
		submit("submit write", (struct nvme_user_io){ .opcode = 1, .addr = at(0) });
		for (unsigned int cns = 0; cns < 0x20; cns++) {
			fill(cns);
			snprintf(name, sizeof(name), "identify %#x", cns);
			admin(name, .opcode = 6, .nsid = nsid, .addr = at(0), .data_len = 4096, .cdw10 = cns);
		}
		for (unsigned int opcode = 0; opcode < 0x100; opcode++) {
			if (opcode == 6)
				continue;
			snprintf(name, sizeof(name), "administrative command %#x", opcode);
			admin(name, .opcode = opcode, .addr = at(0), .data_len = 4096);
		}
		print("the number", ioctl(disk, NVME_IOCTL_ID), 0);
	}
}

#ifdef __x86_64__
/* compat_ioctl: as by a task whose pointers have 32 bits. */
static long compat_ioctl(int fd, unsigned int cmd, void *arg)
{
	enum { NUMBER = 54 };
	int returned;

	asm volatile("int $0x80"
		     : "=a"(returned)
		     : "a"(NUMBER), "b"(fd), "c"(cmd), "d"((unsigned int)(uintptr_t)arg)
		     : "memory", "r8", "r9", "r10", "r11");
	if (returned >= 0)
		return returned;
	errno = -returned;
	return -1;
}

/* compat: the upper half of an address may be anything. */
static void compat(void)
{
	const uint64_t anything = 0xdeadbeefull << 32;
	struct nvme_passthru_cmd64 *wide;
	struct nvme_passthru_cmd *command;
	long returned;

	room = mmap(NULL, ROOM + 2 * MARGIN, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	command = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		       -1, 0);
	if (room == MAP_FAILED || command == MAP_FAILED)
		die("mmap: %s", verdict(-1));
	fill(2);
	*command = (struct nvme_passthru_cmd){ .opcode = 6, .addr = at(0) | anything, .data_len = 4096,
					       .cdw10 = 1 };
	returned = compat_ioctl(disk, NVME_IOCTL_ADMIN_CMD, command);
	print("compat: identify", returned, command->result);
	wide = (void *)command;
	*wide = (struct nvme_passthru_cmd64){ .opcode = 2, .nsid = nsid, .addr = at(8) | anything,
					      .data_len = block, .cdw10 = 8 };
	returned = compat_ioctl(disk, NVME_IOCTL_IO64_CMD, wide);
	print("compat: read", returned, wide->result);
}
#else
static void compat(void)
{
}
#endif

/* bounds: also what C's driver allows to the users of a partition, and an error that it ignores. */
static void bounds(const char *path)
{
	static const unsigned char refused[] = { 0x00, 0x01, 0x04, 0x05, 0x0c, 0x45, 0x7c, 0x7f };
	static const unsigned char moving[] = { 1, 2, 5 };
	char *gap;
	char name[64];

	for (size_t i = 0; i < sizeof(refused); i++) {
		snprintf(name, sizeof(name), "administrative command %#x", refused[i]);
		admin(name, .opcode = refused[i], .addr = at(0), .data_len = 4096, .cdw10 = 1);
	}
	io("fabrics", .opcode = 0x7f);
	for (size_t i = 0; i < sizeof(moving); i++) {
		snprintf(name, sizeof(name), "command %u without memory", moving[i]);
		io(name, .opcode = moving[i], .cdw10 = 8);
		snprintf(name, sizeof(name), "command %u with too little memory", moving[i]);
		io(name, .opcode = moving[i], .addr = at(0), .data_len = 2 * block - 1, .cdw10 = 8, .cdw12 = 1);
	}
	io("deallocate with too little memory", .opcode = 9, .addr = at(0), .data_len = 31, .cdw10 = 1);
	admin("identify without memory", .opcode = 6, .cdw10 = 1);
	admin("identify with too little memory", .opcode = 6, .addr = at(0), .data_len = 4095, .cdw10 = 1);
	admin("log with too little memory", .opcode = 2, .addr = at(0), .data_len = 4096,
	      .cdw10 = 3 | 1024 << 16);
	io("to and from the controller", .opcode = 0x93, .addr = at(0), .data_len = 4096);
	gap = mapping(PROT_READ | PROT_WRITE);
	munmap(gap, PAGE);
	admin("to a gap, odd", .opcode = 6, .addr = (uintptr_t)gap + 1, .data_len = 4096, .cdw10 = 1);
	io("to a gap, odd", .opcode = 2, .addr = (uintptr_t)gap + 1, .data_len = block, .cdw10 = 8);
	disk = partition(path, 2);
	become_plain();
	io("a partition", .opcode = 2, .addr = at(0), .data_len = block, .cdw10 = 8);
}

static long end;
static const char *path_of_disk;
static atomic_ulong done;

static void nothing(int signal)
{
	(void)signal;
}

static void *send_many(void *arg)
{
	uint64_t state = *(uint64_t *)arg;
	char *memory = alloc_pages(64 << 10);
	int fd = open(path_of_disk, O_RDWR);

	while (milliseconds() < end) {
		struct nvme_passthru_cmd command = { .nsid = nsid, .addr = (uintptr_t)memory };
		bool is_admin = random_below(&state, 4) == 0;
		unsigned int count = 1 + random_below(&state, 8);

		if (is_admin) {
			command.opcode = 6;
			command.cdw10 = 1;
			command.data_len = 4096;
		} else {
			command.opcode = 1 + random_below(&state, 2);
			command.data_len = count * block;
			command.cdw10 = random_below(&state, 256);
			command.cdw12 = count - 1;
		}
		command.addr += random_below(&state, PAGE);
		if (random_below(&state, 64) == 0)
			command.timeout_ms = 1;
		if (ioctl(fd, is_admin ? NVME_IOCTL_ADMIN_CMD : NVME_IOCTL_IO_CMD, &command) >= 0)
			atomic_fetch_add(&done, 1);
		else if (errno == ENODEV || errno == ENXIO)
			break;
	}
	close(fd);
	return NULL;
}

static void storm(const char *path, long length, uint64_t seed)
{
	struct sigaction action = { .sa_handler = nothing };
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];

	sigaction(SIGUSR1, &action, NULL);
	end = milliseconds() + length;
	path_of_disk = path;
	for (int i = 0; i < THREADS; i++) {
		seeds[i] = seed * THREADS + i + 1;
		pthread_create(&threads[i], NULL, send_many, &seeds[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		while (pthread_tryjoin_np(threads[i], NULL)) {
			pthread_kill(threads[i], SIGUSR1);
			usleep(500);
		}
	}
	printf("storm: %s\n", done ? "some were done" : "none was done");
}

/* wait_for_page: memory: the page of the disk to which the answer goes. */
static void *wait_for_page(void *memory)
{
	struct nvme_passthru_cmd command = {
		.opcode = 6,
		.addr = (uintptr_t)memory,
		.data_len = PAGE,
		.cdw10 = 1,
	};

	if (ioctl(disk, NVME_IOCTL_ADMIN_CMD, &command) == 0)
		atomic_fetch_add(&done, 1);
	return NULL;
}

static void faults(int count)
{
	pthread_t threads[count];
	char *pages = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, disk, 8 << 20);

	if (pages == MAP_FAILED)
		die("mmap: %s", verdict(-1));
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, wait_for_page, pages + i * PAGE);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("faults: %lu were done\n", done);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		die("usage: passthrough COMMAND DISK ARGUMENT...");
	disk = open(argv[2], O_RDWR | O_CLOEXEC);
	if (disk < 0)
		die("open %s: %s", argv[2], verdict(-1));
	room = alloc_pages(ROOM + 2 * MARGIN);
	nsid = ioctl(disk, NVME_IOCTL_ID);
	block = atoi(argv[3]);
	if (!strcmp(argv[1], "play") && argc == 6) {
		play(strtoull(argv[4], NULL, 0), atoi(argv[5]));
	} else if (!strcmp(argv[1], "plain")) {
		plain(argv[2]);
	} else if (!strcmp(argv[1], "compat")) {
		compat();
	} else if (!strcmp(argv[1], "bounds")) {
		bounds(argv[2]);
	} else if (!strcmp(argv[1], "format")) {
		admin("format", .opcode = 0x80, .nsid = nsid, .cdw10 = atoi(argv[3]),
		      .timeout_ms = argc > 4 ? atoi(argv[4]) : 0);
	} else if (!strcmp(argv[1], "storm") && argc == 6) {
		block = atoi(argv[5]);
		storm(argv[2], atol(argv[3]), strtoull(argv[4], NULL, 0));
	} else if (!strcmp(argv[1], "faults")) {
		faults(atoi(argv[3]));
	} else {
		die("no such command: %s", argv[1]);
	}
	return 0;
}
