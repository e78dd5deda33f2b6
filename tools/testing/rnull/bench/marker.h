/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An 8-byte nop by which the guest tells the counting plugin where a region begins or ends.
 *
 * The displacement of its unused address operand spells "rnb" and a number: 1 begins, 2 ends.
 */
#ifndef RNULL_MARKER_H
#define RNULL_MARKER_H

#define MARKER_BYTES 0x0f, 0x1f, 0x84, 0x00, 0x72, 0x6e, 0x62
#define MARKER_STRING(...) #__VA_ARGS__
#define MARKER_TEXT(...) MARKER_STRING(__VA_ARGS__)
#define MARKER(number) \
	__asm__ volatile(".byte " MARKER_TEXT(MARKER_BYTES) ", " #number ::: "memory")

#endif
