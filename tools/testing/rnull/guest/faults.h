/* SPDX-License-Identifier: GPL-2.0 */
/* Allocations that fail in the whole system, as far as fail_page_alloc and failslab are set up. */
#ifndef RNULL_FAULTS_H
#define RNULL_FAULTS_H

#include "util.h"

/* Pages, objects of slabs. */
enum { FAULT_KINDS = 2, FAULT_TIMES = 1000000000 };

static inline int open_fault(int kind, const char *knob, int flags)
{
	static const char *const kinds[FAULT_KINDS] = { "fail_page_alloc", "failslab" };
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kinds[kind], knob);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", path, verdict(-1));
	return fd;
}

static inline void set_fault(int kind, const char *knob, const char *value)
{
	int fd = open_fault(kind, knob, O_WRONLY);

	if (write(fd, value, strlen(value)) < 0)
		die("%s: %s", knob, verdict(-1));
	close(fd);
}

/* fail_allocations: sets how many per cent of the allocations fail. */
static inline void fail_allocations(const char *percent)
{
	for (int kind = 0; kind < FAULT_KINDS; kind++)
		set_fault(kind, "probability", percent);
}

/* count_faults: from now on faults_counted() counts. */
static inline void count_faults(void)
{
	char times[32];

	snprintf(times, sizeof(times), "%d", FAULT_TIMES);
	for (int kind = 0; kind < FAULT_KINDS; kind++)
		set_fault(kind, "times", times);
}

/* faults_counted: how many allocations have failed, by what is missing of those that may. */
static inline long faults_counted(int kind)
{
	char text[32] = "";
	int fd = open_fault(kind, "times", O_RDONLY);

	if (read(fd, text, sizeof(text) - 1) < 0)
		die("times: %s", verdict(-1));
	close(fd);
	return FAULT_TIMES - atol(text);
}

#endif
