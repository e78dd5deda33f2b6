/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the module `hostile` share: a bus, a controller, and what it may lie about.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <linux/nvme.h>
#include <linux/prandom.h>
#include <linux/types.h>

#define REGISTERS_SIZE	0x1000
#define PAGE_BYTES	4096
#define QUEUES		9

/* Lies: name, whether it is told while it is set (else, per event with some probability). */
#define LIES(x)					\
	/* Completions. */			\
	x(cid_unknown)				\
	x(cid_twice)				\
	x(cid_stale)				\
	x(cid_ahead)				\
	x(phase)				\
	x(garbage)				\
	x(changes)				\
	x(flood)				\
	x(sqhd)					\
	x(other_queue)				\
	x(early)				\
	x(never)				\
	x(haunt)				\
	x(late)					\
	x(status)				\
	x(retry)				\
	x(reserved)				\
	/* Interrupts. */			\
	x(irq_none)				\
	x(irq_storm)				\
	x(irq_lost)				\
	/* Answers. */				\
	x(identify)				\
	x(random)				\
	x(mdts)					\
	x(strings)				\
	x(capacity)				\
	x(blocks)				\
	x(format)				\
	x(preferred)				\
	x(descriptors)				\
	x(list)					\
	x(count)				\
	x(queues)				\
	x(no_queues)				\
	x(admin_fails)				\
	/* Registers. */			\
	x(rdy_never)				\
	x(rdy_always)				\
	x(shst_never)				\
	x(cfs)					\
	x(gone)					\
	x(flap)					\
	x(csts)					\
	x(cap_ones)				\
	x(cap_queue)				\
	x(cap_stride)				\
	x(cap_page)				\
	x(cap_random)				\
	x(version)

#define ENUMERATE(name)	LIE_##name,
enum lie { LIES(ENUMERATE) LIE_COUNT };
#undef ENUMERATE

struct controller;

/* hostile_main.c: the bus. */
void raise_interrupt(void);
int access_memory(u64 address, void *buffer, size_t len, bool to_memory);
u32 mastery(void);
void only_while(u32 mastery);
bool take_reset_request(void);
void set_gone(bool gone);
void fault(const char *what, u64 value);
extern void __iomem *bar;
extern unsigned long bar_size;

/* hostile_lies.c */
bool lie(enum lie which);
bool lie_is_set(enum lie which);
u32 chance(u32 below);
u64 random64(void);
bool apply_new_lies(void);
void answer_falsely(struct nvme_command *command, void *answer);
u64 lie_about_capabilities(u64 cap);

/* hostile_controller.c */
int make_disks(void);
void free_disks(void);
bool poll_controller(void);
extern unsigned long done;

#endif
