/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an x86-64 instruction costs beyond being one, told from its first bytes.
 */
#ifndef RNULL_DECODE_H
#define RNULL_DECODE_H

#include <stddef.h>
#include <stdint.h>

enum kind {
	PLAIN = '-',
	LOCKED = 'L',	/* a lock prefix, or xchg with memory */
	CALL = 'C',	/* to an address in the instruction */
	INDIRECT = 'I',	/* a call to an address in a register or in memory */
	JUMP = 'J',	/* a jump to such an address */
	STRING = 'S',	/* movs or stos, repeated or not */
};

/* A marker is an 8-byte nop whose unused displacement spells "rnb" and its number; see load/marker.h. */
enum { NO_MARKER, MARKER_BEGIN, MARKER_END };

static inline int marker_of(const uint8_t *code, size_t size)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x84, 0x00, 'r', 'n', 'b' };

	for (size_t i = 0; i < sizeof(nop); i++)
		if (i >= size || code[i] != nop[i])
			return NO_MARKER;
	return size == 8 && code[7] <= MARKER_END ? code[7] : NO_MARKER;
}

static inline enum kind kind_of(const uint8_t *code, size_t size)
{
	size_t i = 0;
	uint8_t opcode, modrm;

	for (; i < size; i++) {
		uint8_t byte = code[i];

		if (byte == 0xf0)
			return LOCKED;
		/* Operand and address size, rep, segments, and REX, which comes last. */
		if (byte != 0x66 && byte != 0x67 && byte != 0xf2 && byte != 0xf3 && byte != 0x2e && byte != 0x36 &&
		    byte != 0x3e && byte != 0x26 && byte != 0x64 && byte != 0x65 && (byte & 0xf0) != 0x40)
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

#endif
