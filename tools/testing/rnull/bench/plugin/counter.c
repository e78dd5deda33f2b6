// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts how often each kernel instruction is executed between two marks that the guest sets.
 *
 * Each instruction gets a counter when it is first translated. A marker in the guest's code clears all counters (begin) or
 * writes those that are not zero (end):
 *
 *	region N
 *	i ADDRESS KIND COUNT		an instruction, KIND as in decode.h
 *	w ADDRESS CALL LINE VCPUS	with stores=on: it wrote the cache line LINE, from the vCPUs in the bit mask VCPUS;
 *					the last call instruction before it was at CALL
 *	end N
 *
 * Addresses are hexadecimal, and so are lines, which are addresses without their low 6 bits. The user's instructions are
 * not counted.
 *
 * To count, all vCPUs must run in one thread (-accel tcg,thread=single), because counters are not atomic. Each is
 * incremented by a call, not by QEMU's inline operation: of a guest with several vCPUs in one thread QEMU 10.0 takes the
 * vCPU's number for a constant, which its inline operations then multiply in place, and so change every use of that
 * constant in the translated code. For the same reason the number passed to callbacks is right only with thread=multi:
 * stores=on needs that, and its counts are then approximate.
 *
 * Arguments: out=FILE (required), stores=on.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "qemu_plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define KERNEL_START 0xffff800000000000ull
#define SLOTS 524288u
#define BUCKETS (SLOTS * 2)
#define WRITES 1048576u
#define VCPUS 32

/* An instruction: the same address with another kind, after the kernel patched itself, is another one. */
struct slot {
	uint64_t address;
	uint64_t count;
	enum kind kind;
};

/* That an instruction wrote a cache line in this region, after a call from somewhere. */
struct write {
	uint64_t line, call;
	uint32_t slot;
	uint32_t vcpus;
};

static struct slot *slots;
static uint32_t *buckets;	/* slot number + 1, by hash */
static uint32_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of all but the counts */
static struct write *writes;	/* by hash; vcpus == 0 is an empty one */
static uint32_t written;
static uint64_t last_call[VCPUS];
static bool counting;
static unsigned int region;
static FILE *out;

static uint64_t hash(uint64_t value)
{
	value *= 0x9e3779b97f4a7c15ull;
	return value ^ (value >> 29);
}

__attribute__((noreturn)) static void give_up(const char *why)
{
	fprintf(stderr, "counter: %s\n", why);
	exit(1);
}

static struct slot *slot_of(uint64_t address, enum kind kind)
{
	uint64_t at = hash(address ^ ((uint64_t)kind << 48)) % BUCKETS;

	for (; buckets[at]; at = (at + 1) % BUCKETS) {
		const struct slot *slot = &slots[buckets[at] - 1];

		if (slot->address == address && slot->kind == kind)
			return &slots[buckets[at] - 1];
	}
	if (used == SLOTS)
		give_up("more instructions than counters; raise SLOTS");
	slots[used] = (struct slot){ .address = address, .kind = kind };
	buckets[at] = ++used;
	return &slots[used - 1];
}

static void on_execution(unsigned int vcpu, void *data)
{
	struct slot *slot = data;

	(void)vcpu;
	slot->count++;
}

static void on_call(unsigned int vcpu, void *data)
{
	const struct slot *slot = data;

	last_call[vcpu % VCPUS] = slot->address;
}

static void on_write(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	uint32_t slot = (struct slot *)data - slots;
	uint64_t line = vaddr >> 6, call = last_call[vcpu % VCPUS], at;

	if (!counting || !qemu_plugin_mem_is_store(info))
		return;
	pthread_mutex_lock(&lock);
	for (at = hash(line ^ ((uint64_t)slot << 40) ^ hash(call)) % WRITES; writes[at].vcpus; at = (at + 1) % WRITES)
		if (writes[at].line == line && writes[at].slot == slot && writes[at].call == call)
			break;
	if (!writes[at].vcpus && ++written > WRITES / 2)
		give_up("more cache lines are written than can be recorded; measure fewer I/Os");
	writes[at].line = line;
	writes[at].slot = slot;
	writes[at].call = call;
	writes[at].vcpus |= 1u << vcpu % VCPUS;
	pthread_mutex_unlock(&lock);
}

static void begin(void)
{
	for (uint32_t i = 0; i < used; i++)
		slots[i].count = 0;
	if (writes)
		memset(writes, 0, WRITES * sizeof(*writes));
	written = 0;
	counting = true;
}

static void end(void)
{
	counting = false;
	fprintf(out, "region %u\n", region);
	for (uint32_t i = 0; i < used; i++) {
		if (slots[i].count)
			fprintf(out, "i %llx %c %llu\n", (unsigned long long)slots[i].address, slots[i].kind,
				(unsigned long long)slots[i].count);
	}
	for (uint32_t i = 0; writes && i < WRITES; i++) {
		const struct slot *slot = &slots[writes[i].slot];

		if (writes[i].vcpus)
			fprintf(out, "w %llx %llx %llx %x\n", (unsigned long long)slot->address,
				(unsigned long long)writes[i].call, (unsigned long long)writes[i].line,
				writes[i].vcpus);
	}
	fprintf(out, "end %u\n", region++);
	if (fflush(out))
		give_up("cannot write the counts");
}

static void on_marker(unsigned int vcpu, void *data)
{
	(void)vcpu;
	pthread_mutex_lock(&lock);
	if ((uintptr_t)data == MARKER_BEGIN)
		begin();
	else
		end();
	pthread_mutex_unlock(&lock);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		uint8_t code[16];
		size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
		struct slot *slot;

		if (address < KERNEL_START) {
			uintptr_t marker = marker_of(code, size);

			if (marker != NO_MARKER)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, QEMU_PLUGIN_CB_NO_REGS,
								       (void *)marker);
			continue;
		}
		slot = slot_of(address, kind_of(code, size));
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_execution, QEMU_PLUGIN_CB_NO_REGS, slot);
		if (!writes)
			continue;
		if (slot->kind == CALL || slot->kind == INDIRECT)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_call, QEMU_PLUGIN_CB_NO_REGS, slot);
		qemu_plugin_register_vcpu_mem_cb(insn, on_write, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, slot);
	}
	pthread_mutex_unlock(&lock);
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	fclose(out);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strcmp(argv[i], "stores=on"))
			writes = calloc(WRITES, sizeof(*writes));
		else
			return 1;
	}
	slots = calloc(SLOTS, sizeof(*slots));
	buckets = calloc(BUCKETS, sizeof(*buckets));
	if (!out || !slots || !buckets)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
	return 0;
}
