// SPDX-License-Identifier: GPL-2.0
/*
 * Leaves the guest with free memory in single pages.
 *
 * usage: pieces MIB
 *
 * A process that stays takes all memory but MIB, and gives back every second page. This one prints
 * /proc/buddyinfo, which has the number of free blocks of each size, and whether that was enough.
 */
#include <sys/prctl.h>

#include "util.h"

#define SIZES 11

static void take(size_t left)
{
	size_t page = sysconf(_SC_PAGESIZE), size = sysconf(_SC_AVPHYS_PAGES) * page;
	char *memory;

	if (size <= left)
		die("not ok pieces - only %zu MiB are free", size >> 20);
	size -= left;
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("not ok pieces - mmap: %s", strerror(errno));
	for (size_t at = 0; at < size; at += page)
		memory[at] = 1;
	for (size_t at = 0; at < size; at += 2 * page) {
		if (madvise(memory + at, page, MADV_DONTNEED))
			die("not ok pieces - madvise: %s", strerror(errno));
	}
}

int main(int argc, char **argv)
{
	unsigned long pages = 0, single = 0, count;
	char line[512], *next;
	int done[2], words = 0;
	FILE *file;

	if (argc != 2 || pipe(done))
		die("usage: pieces MIB");
	if (!fork()) {
		take(strtoul(argv[1], NULL, 10) << 20);
		close(done[0]);
		if (write(done[1], "", 1) != 1)
			die("not ok pieces - the pipe is gone");
		close(STDOUT_FILENO);
		for (;;)
			pause();
	}
	close(done[1]);
	if (read(done[0], line, 1) != 1)
		return 1;
	file = fopen("/proc/buddyinfo", "r");
	if (!file)
		die("not ok pieces - /proc/buddyinfo: %s", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		printf("# %s", line);
		/* Node 0, zone NAME, and the numbers of free blocks of 1, 2, 4 ... pages. */
		if (sscanf(line, "Node %*d, zone %*s%n", &words) == EOF || !words)
			die("not ok pieces - /proc/buddyinfo is not as expected");
		next = line + words;
		for (int order = 0; order < SIZES; order++) {
			count = strtoul(next, &next, 10);
			pages += count << order;
			single += order ? 0 : count;
		}
	}
	if (single < pages / 2)
		die("not ok pieces - of %lu free pages, %lu are single", pages, single);
	printf("ok pieces: of %lu free pages, %lu are single\n", pages, single);
	return 0;
}
