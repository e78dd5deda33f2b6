// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts how often each kernel instruction is executed between two markers that
 * the guest sets.
 *
 * Each instruction gets a counter when it is first translated. A marker in the guest's code clears
 * all counters (begin) or writes those that are not zero (end):
 *
 *	region
 *	i ADDRESS KIND COUNT		an instruction, KIND as in enum kind
 *	w ADDRESS CALL LINE VCPUS	with stores=on: it wrote the cache line LINE, from the vCPUs
 *					in the bit mask VCPUS; the last call before was at CALL
 *
 * Addresses are hexadecimal, and so are lines, which are addresses without their low 6 bits. User
 * instructions are not counted.
 *
 * To count, all vCPUs must run in one thread (-accel tcg,thread=single), because counters are not
 * atomic. Each is incremented by a call, not by QEMU's inline operation: of a guest with several
 * vCPUs in one thread QEMU 10.0 takes the vCPU's number for a constant, which its inline operations
 * then multiply in place, and so change every use of that constant in the translated code. For the
 * same reason the number passed to callbacks is right only with thread=multi: stores=on needs that,
 * and its counts are then approximate.
 *
 * With patience=MICROSECONDS, a vCPU that has rung the doorbell of a submission queue of an NVMe
 * controller waits that long, while QEMU's main thread does the commands. So they always complete
 * before the next instruction is executed: else it would depend on the host how many instructions
 * later, and how many commands share an interrupt.
 *
 * Arguments: out=FILE (required), stores=on, patience=MICROSECONDS.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "marker.h"
#include "qemu_plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define KERNEL_START 0xffff800000000000ull
#define VCPUS 32

/* What an instruction costs beyond being one. */
enum kind {
	PLAIN = '-',
	LOCKED = 'L',	/* a lock prefix, or xchg with memory */
	CALL = 'C',	/* to an address in the instruction */
	INDIRECT = 'I',	/* a call to an address in a register or in memory */
	JUMP = 'J',	/* a jump to such an address */
	STRING = 'S',	/* movs or stos, repeated or not */
};

/* The same address with another kind, after the kernel patched itself, is another instruction. */
struct instruction {
	uint64_t address;
	enum kind kind;
	uint64_t count;
};

/* An instruction wrote a cache line in this region, after a call from that address. */
struct store {
	const struct instruction *by;
	uint64_t call, line;
	uint32_t vcpus;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of all but the counts */
static void *instructions, *stores;	/* trees of tsearch() */
static uint64_t last_call[VCPUS];
static bool counting, record_stores;
static unsigned long patience;	/* in microseconds */
static FILE *out;

static int by_address(const void *left, const void *right)
{
	const struct instruction *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->kind - b->kind;
}

static int by_line(const void *left, const void *right)
{
	const struct store *a = left, *b = right;

	return memcmp(a, b, offsetof(struct store, vcpus));
}

/* The entry of a tree that equals the key, which is copied if there is none. */
static void *find(void **tree, const void *key, size_t size,
		  int (*compare)(const void *, const void *))
{
	void **found = tfind(key, tree, compare);
	void *new;

	if (found)
		return *found;
	new = malloc(size);
	if (!new || !tsearch(memcpy(new, key, size), tree, compare))
		abort();
	return new;
}

static void on_execution(unsigned int vcpu, void *data)
{
	struct instruction *instruction = data;

	(void)vcpu;
	instruction->count++;
}

static void on_call(unsigned int vcpu, void *data)
{
	const struct instruction *instruction = data;

	last_call[vcpu % VCPUS] = instruction->address;
}

static void on_store(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	struct store key = { data, last_call[vcpu % VCPUS], vaddr >> 6, 0 }, *store;

	if (!counting || !qemu_plugin_mem_is_store(info))
		return;
	pthread_mutex_lock(&lock);
	store = find(&stores, &key, sizeof(key), by_line);
	store->vcpus |= 1u << vcpu % VCPUS;
	pthread_mutex_unlock(&lock);
}

/*
 * Doorbells begin at 0x1000 of the memory of a controller, which has 16 KiB; those of submission and
 * completion queues take turns.
 */
static void on_doorbell(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	const struct qemu_plugin_hwaddr *hwaddr = qemu_plugin_get_hwaddr(info, vaddr);
	uint64_t offset;

	(void)vcpu;
	(void)data;
	if (!hwaddr || !qemu_plugin_hwaddr_is_io(hwaddr))
		return;
	offset = qemu_plugin_hwaddr_phys_addr(hwaddr) & 0x3fff;
	if (offset < 0x1000 || (offset & 4) ||
	    strcmp(qemu_plugin_hwaddr_device_name(hwaddr), "nvme"))
		return;
	usleep(patience);
}

static void clear(const void *node, VISIT which, int depth)
{
	(void)depth;
	if (which == leaf || which == postorder)
		(*(struct instruction **)node)->count = 0;
}

static void print(const void *node, VISIT which, int depth)
{
	const struct instruction *of = *(struct instruction **)node;

	(void)depth;
	if ((which == leaf || which == postorder) && of->count)
		fprintf(out, "i %llx %c %llu\n", (unsigned long long)of->address, of->kind,
			(unsigned long long)of->count);
}

static void print_store(const void *node, VISIT which, int depth)
{
	const struct store *store = *(struct store **)node;

	(void)depth;
	if (which == leaf || which == postorder)
		fprintf(out, "w %llx %llx %llx %x\n", (unsigned long long)store->by->address,
			(unsigned long long)store->call, (unsigned long long)store->line,
			store->vcpus);
}

static void on_marker(unsigned int vcpu, void *data)
{
	(void)vcpu;
	pthread_mutex_lock(&lock);
	counting = (uintptr_t)data == 1;
	if (counting) {
		twalk(instructions, clear);
		tdestroy(stores, free);
		stores = NULL;
	} else {
		fputs("region\n", out);
		twalk(instructions, print);
		twalk(stores, print_store);
		if (fflush(out)) {
			perror("counter: cannot write the counts");
			exit(1);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* The number of the marker that the instruction is, or 0. */
static uintptr_t marker_of(const uint8_t *code, size_t size)
{
	static const uint8_t nop[] = { MARKER_BYTES };

	return size == sizeof(nop) + 1 && !memcmp(code, nop, sizeof(nop)) ? code[sizeof(nop)] : 0;
}

static enum kind kind_of(const uint8_t *code, size_t size)
{
	/* Operand and address size, rep, segments. */
	static const uint8_t prefixes[] = { 0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26,
					    0x64, 0x65 };
	size_t i = 0;
	uint8_t opcode, modrm;

	for (; i < size; i++) {
		if (code[i] == 0xf0)
			return LOCKED;
		/* REX comes last. */
		if (!memchr(prefixes, code[i], sizeof(prefixes)) && (code[i] & 0xf0) != 0x40)
			break;
	}
	opcode = i < size ? code[i] : 0;
	modrm = i + 1 < size ? code[i + 1] : 0;
	switch (opcode) {
	case 0xe8:
		return CALL;
	case 0xa4: case 0xa5: case 0xaa: case 0xab:
		return STRING;
	case 0x86: case 0x87:
		return (modrm >> 6) == 3 ? PLAIN : LOCKED;
	case 0xff:
		switch ((modrm >> 3) & 7) {
		case 2: case 3:
			return INDIRECT;
		case 4: case 5:
			return JUMP;
		}
	}
	return PLAIN;
}

static void translate(struct qemu_plugin_insn *insn)
{
	struct instruction key = { .address = qemu_plugin_insn_vaddr(insn) }, *instruction;
	uint8_t code[16];
	size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
	uintptr_t marker = marker_of(code, size);

	if (key.address < KERNEL_START) {
		if (marker)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker,
							       QEMU_PLUGIN_CB_NO_REGS,
							       (void *)marker);
		return;
	}
	key.kind = kind_of(code, size);
	instruction = find(&instructions, &key, sizeof(key), by_address);
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_execution, QEMU_PLUGIN_CB_NO_REGS,
					       instruction);
	if (patience && key.kind == PLAIN)
		qemu_plugin_register_vcpu_mem_cb(insn, on_doorbell, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_W, NULL);
	if (!record_stores)
		return;
	if (key.kind == CALL || key.kind == INDIRECT)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_call, QEMU_PLUGIN_CB_NO_REGS,
						       instruction);
	qemu_plugin_register_vcpu_mem_cb(insn, on_store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W,
					 instruction);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		translate(qemu_plugin_tb_get_insn(tb, i));
	pthread_mutex_unlock(&lock);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info,
					   int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strcmp(argv[i], "stores=on"))
			record_stores = true;
		else if (!strncmp(argv[i], "patience=", 9))
			patience = strtoul(argv[i] + 9, NULL, 10);
		else
			return 1;
	}
	if (!out)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
