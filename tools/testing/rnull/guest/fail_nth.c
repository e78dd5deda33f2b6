// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats a system call, each time with another of its allocations failing.
 *
 * usage: fail_nth FIRST STEP CALL -- UNDO -- STATE...
 *
 * CALL, UNDO: put PATH TEXT | load FILE PARAMETERS | mkdir PATH | rmdir PATH | unload MODULE
 * STATE: a pattern of paths that may come or go | =FILE, for what is in it | +DISK, which must take and give back data
 *
 * A call that fails must leave the state as it was; so must one that succeeds, after UNDO. Answers with the number of
 * failures, of allocations, and with what the failures said.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

enum { NEVER = 1000000, ALIGNED = 65536 };

static int knob;

/* turn: the so-manieth allocation of this task from now on will fail, for 0 none. */
static void turn(long nth)
{
	char text[32];

	if (pwrite(knob, text, snprintf(text, sizeof(text), "%ld", nth), 0) < 0)
		die("fail-nth cannot be set to %ld: %s", nth, verdict(-1));
}

/* left: how far it is to that allocation; 0 when it has failed. */
static long left(void)
{
	char text[32] = "";

	if (pread(knob, text, sizeof(text) - 1, 0) < 0)
		die("fail-nth cannot be read: %s", verdict(-1));
	return atol(text);
}

/* call: makes a system call; where it needs an open file, opening counts for nothing. */
static long call(char **words, long nth)
{
	bool put = !strcmp(words[0], "put"), load = !strcmp(words[0], "load");
	int fd = -1, saved;
	long result;

	if (put || load) {
		fd = open(words[1], (put ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		if (fd < 0)
			die("open %s: %s", words[1], verdict(-1));
	}
	turn(nth);
	if (put)
		result = write(fd, words[2], strlen(words[2]));
	else if (load)
		result = syscall(SYS_finit_module, fd, words[2], 0);
	else if (!strcmp(words[0], "mkdir"))
		result = mkdir(words[1], 0755);
	else if (!strcmp(words[0], "rmdir"))
		result = rmdir(words[1]);
	else
		result = syscall(SYS_delete_module, words[1], O_NONBLOCK);
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return result;
}

/* Undoes a call that succeeded; a device that is just going may hold it up for a moment. */
static void undo(char **words)
{
	for (int tries = 0; call(words, 0) < 0; tries++) {
		if (tries == 100)
			die("undoing it by %s says %s", words[0], verdict(-1));
		usleep(20000);
	}
}

static void serves(const char *disk)
{
	static unsigned char *buffer;
	int fd = open(disk, O_RDWR | O_DIRECT);

	if (!buffer)
		buffer = aligned_alloc(ALIGNED, ALIGNED);
	memset(buffer, 0xa5, ALIGNED);
	if (fd < 0 || pwrite(fd, buffer, ALIGNED, 0) != ALIGNED)
		die("%s takes nothing: %s", disk, verdict(-1));
	memset(buffer, 0, ALIGNED);
	if (pread(fd, buffer, ALIGNED, 0) != ALIGNED || buffer[0] != 0xa5 ||
	    memcmp(buffer, buffer + 1, ALIGNED - 1))
		die("%s does not give back what it took", disk);
	close(fd);
}

/* state: all that can be seen of it, one line each. */
static char *state(char **words)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	for (; *words; words++) {
		glob_t found;

		if (**words == '+') {
			serves(*words + 1);
		} else if (**words == '=') {
			char line[4096];
			FILE *in = fopen(*words + 1, "r");

			while (in && fgets(line, sizeof(line), in))
				fprintf(out, "%s: %s", *words, line);
			if (in)
				fclose(in);
		} else if (!glob(*words, 0, NULL, &found)) {
			for (size_t i = 0; i < found.gl_pathc; i++)
				fprintf(out, "%s\n", found.gl_pathv[i]);
			globfree(&found);
		}
	}
	fclose(out);
	return text;
}

/* compare: ends the program with the first line in which two states differ. */
static void compare(const char *before, const char *after, long nth, const char *said)
{
	size_t same = 0;

	if (!strcmp(before, after))
		return;
	while (before[same] && before[same] == after[same])
		same++;
	while (same && before[same - 1] != '\n')
		same--;
	die("allocation %ld failed, the call said %s: then '%.*s' instead of '%.*s'", nth, said,
	    (int)strcspn(after + same, "\n"), after + same, (int)strcspn(before + same, "\n"),
	    before + same);
}

/* remember: adds an answer to the list of those that were given. */
static void remember(char *list, size_t room, const char *answer)
{
	if (!strstr(list, answer))
		snprintf(list + strlen(list), room - strlen(list), " %s", answer);
}

int main(int count, char **words)
{
	char **undoing, **seen, *before, answers[256] = "";
	long nth, step, last, failures = 0, tolerated = 0;

	knob = open("/proc/thread-self/fail-nth", O_RDWR);
	if (knob < 0 || count < 7)
		die("fail_nth: the wrong words, or a kernel that injects none");
	nth = atol(words[1]);
	step = atol(words[2]);
	words += 3;
	for (undoing = words; strcmp(*undoing, "--"); undoing++)
		;
	*undoing++ = NULL;
	for (seen = undoing; strcmp(*seen, "--"); seen++)
		;
	*seen++ = NULL;

	if (call(words, NEVER) < 0)
		die("without a fault it says %s", verdict(-1));
	last = NEVER - left();
	turn(0);
	undo(undoing);
	before = state(seen);
	/* From the end, where what we look for is done, if the first is negative. */
	for (nth = nth < 0 ? last + nth : nth; nth <= last; nth += step) {
		long result = call(words, nth);
		const char *said = verdict(result);
		char *after;

		turn(0);
		if (result < 0) {
			failures++;
			remember(answers, sizeof(answers), said);
		} else {
			tolerated++;
			undo(undoing);
		}
		after = state(seen);
		compare(before, after, nth, said);
		free(after);
	}
	if (!failures)
		die("none of %ld allocations made it fail", last);
	printf("%ld of %ld allocations make it fail, %ld do not; it says%s\n", failures, last, tolerated,
	       answers);
	return 0;
}
