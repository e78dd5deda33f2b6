/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Instructions that do nothing but tell the counting plugin where a region begins or ends.
 */
#ifndef RNULL_MARKER_H
#define RNULL_MARKER_H

/* The nop has an address operand that is never used: its displacement spells "rnb" and the marker's number. */
#define MARKER(number) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 'r', 'n', 'b', " #number ::: "memory")

static inline void marker_begin(void)
{
	MARKER(1);
}

static inline void marker_end(void)
{
	MARKER(2);
}

#endif
