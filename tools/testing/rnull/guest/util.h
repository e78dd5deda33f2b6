/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the test programs of the guest answer.
 *
 * Every command answers on one line; what a system call said is `ok` or the name of its errno.
 */
#ifndef RNULL_UTIL_H
#define RNULL_UTIL_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

static inline const char *verdict(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

#endif
