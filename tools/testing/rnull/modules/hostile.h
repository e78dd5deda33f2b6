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

/* Some lies are told while they are set, others per event with some probability. */
#define LIE(name)	LIE_##name,
enum lie {
#include "hostile_names.h"
	LIE_COUNT
};

#undef LIE

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
