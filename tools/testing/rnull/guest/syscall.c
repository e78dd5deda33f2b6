// SPDX-License-Identifier: GPL-2.0
/*
 * Makes a call, then prints `ok` or the name of its errno.
 *
 * usage: syscall CALL
 *        syscall set DIRECTORY ATTRIBUTE=TEXT...
 *                                 writes attributes in this order until one fails, which is printed
 *        syscall show PATH...     prints the values of attributes
 *        syscall fail-nth FIRST STEP CALL -- UNDO -- STATE...
 *
 * CALL, UNDO: put PATH TEXT | load FILE PARAMETERS | mkdir PATH | rmdir PATH | unload MODULE
 *             write|fua|polled|discard|reset DISK OFFSET BYTES
 * STATE: a pattern of paths | =FILE, for its content | +DISK, which must keep data
 *
 * `fail-nth` repeats a call, each time with another of its allocations failing. A call that fails
 * must leave the state as it was; so must one that succeeds, after UNDO. An I/O that fails may have
 * done a part, so it is undone, too. What a write that succeeds has written must be there. It prints
 * the number of failures and of allocations, and the errnos. A negative FIRST counts from the end.
 *
 * `polled` is a write of io_uring to a polled queue, of which some failures must come from the driver,
 * when it is polled. `reset` is that of zones.
 */
#include <glob.h>
#include <linux/blkzoned.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "polled.h"
#include "util.h"

enum { NEVER = 1000000, ALIGNED = 65536 };

static int fail_nth_fd = -1;
/* Whether the driver had the last polled write until it was polled for. */
static bool was_polled;

/* fail_nth: lets the Nth allocation of this task from now on fail; none for 0. */
static void fail_nth(long nth)
{
	if (fail_nth_fd >= 0 && dprintf(fail_nth_fd, "%ld", nth) < 0)
		die("fail-nth cannot be set to %ld: %s", nth, verdict(-1));
}

/* fail_nth_left: the number of allocations before that one; 0 when it has failed. */
static long fail_nth_left(void)
{
	char text[32] = "";

	if (pread(fail_nth_fd, text, sizeof(text) - 1, 0) < 0)
		die("fail-nth cannot be read: %s", verdict(-1));
	return atol(text);
}

static bool is_io(const char *command)
{
	return !strcmp(command, "write") || !strcmp(command, "fua") ||
	       !strcmp(command, "polled") || !strcmp(command, "discard") ||
	       !strcmp(command, "reset");
}

/* do_io: an I/O whose Nth allocation fails, if any; a write is of 0x5a. */
static long do_io(char **words, long nth)
{
	uint64_t offset = strtoull(words[2], NULL, 0), bytes = strtoull(words[3], NULL, 0);
	uint64_t range[2] = { offset, bytes }, sectors[2] = { offset / 512, bytes / 512 };
	struct iovec part = { alloc_pages(bytes), bytes };
	int fd = open_direct(words[1], O_RDWR), saved;
	bool polled = !strcmp(words[0], "polled");
	struct polled_write polling;
	long result;

	memset(part.iov_base, 0x5a, bytes);
	if (polled)
		prepare_polled_write(&polling, words[1], fd, part.iov_base, bytes,
				     offset);
	fail_nth(nth);
	if (!strcmp(words[0], "discard"))
		result = ioctl(fd, BLKDISCARD, range);
	else if (!strcmp(words[0], "reset"))
		result = ioctl(fd, BLKRESETZONE, sectors);
	else if (polled)
		result = do_polled_write(&polling);
	else
		result = pwritev2(fd, &part, 1, offset, strcmp(words[0], "fua") ? 0 : RWF_DSYNC);
	saved = errno;
	was_polled = polled && polling.reached_driver;
	close(fd);
	munmap(part.iov_base, bytes);
	errno = saved;
	return result;
}

/* check_written: ends the program unless the first bytes of a write that succeeded are there. */
static void check_written(char **words, long bytes)
{
	unsigned char *buffer = alloc_pages(bytes);
	int fd = open_direct(words[1], O_RDONLY);

	if (pread(fd, buffer, bytes, strtoull(words[2], NULL, 0)) != bytes)
		die("%s cannot be read: %s", words[1], verdict(-1));
	if (buffer[0] != 0x5a || memcmp(buffer, buffer + 1, bytes - 1))
		die("%s has lost what was written in spite of an allocation that failed", words[1]);
	close(fd);
	munmap(buffer, bytes);
}

/* call: makes a system call whose Nth allocation fails, if any; opening a file does not count. */
static long call(char **words, long nth)
{
	bool put = !strcmp(words[0], "put"), load = !strcmp(words[0], "load");
	int fd = -1, saved;
	long result;

	if (is_io(words[0]))
		return do_io(words, nth);
	if (put && !nth)
		return write_file(words[1], words[2]);
	if (put || load) {
		fd = open(words[1], (put ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		if (fd < 0)
			die("open %s: %s", words[1], verdict(-1));
	}
	fail_nth(nth);
	if (put)
		result = write(fd, words[2], strlen(words[2]));
	else if (load)
		result = syscall(SYS_finit_module, fd, words[2], 0);
	else if (!strcmp(words[0], "mkdir"))
		result = mkdir(words[1], 0755);
	else if (!strcmp(words[0], "rmdir"))
		result = rmdir(words[1]);
	else if (!strcmp(words[0], "unload"))
		result = syscall(SYS_delete_module, words[1], O_NONBLOCK);
	else
		die("syscall: no command '%s'", words[0]);
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return result;
}

/* unescape: replaces \n, \t and \s (a space) in a text. */
static char *unescape(char *text)
{
	char *to = text;

	for (char *from = text; *from; from++)
		if (*from != '\\' || !from[1])
			*to++ = *from;
		else
			*to++ = *++from == 'n' ? '\n' : *from == 't' ? '\t' : ' ';
	*to = 0;
	return text;
}

/* show: the value of an attribute, or why it cannot be read. */
static const char *show(const char *path)
{
	static char text[4096];

	return read_file(path, text) ?: verdict(-1);
}

/* undo: repeats a call until it succeeds; a device that is being removed may delay it. */
static void undo(char **words)
{
	for (int tries = 0; call(words, 0) < 0; tries++) {
		if (tries == 100)
			die("undoing it by %s says %s", words[0], verdict(-1));
		usleep(20000);
	}
}

static void check_data(const char *disk)
{
	unsigned char *buffer = alloc_pages(ALIGNED);
	int fd = open_direct(disk, O_RDWR);

	memset(buffer, 0xa5, ALIGNED);
	if (pwrite(fd, buffer, ALIGNED, 0) != ALIGNED)
		die("write to %s: %s", disk, verdict(-1));
	memset(buffer, 0, ALIGNED);
	if (pread(fd, buffer, ALIGNED, 0) != ALIGNED || buffer[0] != 0xa5 ||
	    memcmp(buffer, buffer + 1, ALIGNED - 1))
		die("%s does not keep data", disk);
	close(fd);
	munmap(buffer, ALIGNED);
}

/* state: all that can be seen of it, a line each. */
static char *state(char **words)
{
	char *text, line[4096];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (; *words; words++) {
		glob_t found;

		if (**words == '+') {
			check_data(*words + 1);
		} else if (**words == '=') {
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

/* split: ends a list of words at the next "--", returns what is behind that. */
static char **split(char **words)
{
	for (; *words; words++)
		if (!strcmp(*words, "--")) {
			*words = NULL;
			return words + 1;
		}
	die("fail-nth: there is no '--'");
}

static void fail_each(long nth, long step, char **words)
{
	char **undoing = split(words), **seen = split(undoing), *before, errnos[256] = "";
	long last, failures = 0, tolerated = 0, polled = 0;
	bool polling = !strcmp(words[0], "polled");

	fail_nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fail_nth_fd < 0)
		die("this kernel injects no faults");
	if (call(words, NEVER) < 0)
		die("without a fault it says %s", verdict(-1));
	last = NEVER - fail_nth_left();
	fail_nth(0);
	undo(undoing);
	before = state(seen);
	for (nth = nth < 0 ? last + nth : nth; nth <= last; nth += step) {
		long result = call(words, nth);
		const char *said = verdict(result);
		char *after;

		fail_nth(0);
		if (result < 0) {
			failures++;
			polled += was_polled;
			if (!strstr(errnos, said))
				strcat(strcat(errnos, " "), said);
		} else {
			tolerated++;
			if (is_io(words[0]) && result)
				check_written(words, result);
		}
		if (result >= 0 || is_io(words[0]))
			undo(undoing);
		after = state(seen);
		compare(before, after, nth, said);
		free(after);
	}
	if (!failures)
		die("none of %ld allocations made it fail", last);
	if (polling && !polled)
		die("no write that failed was polled for");
	if (polling)
		printf("%ld failures were polled for; ", polled);
	printf("%ld of %ld allocations make it fail, %ld do not; it says%s\n", failures, last,
	       tolerated, errnos);
}

/* words_of: how many words a call has, with the name of the program. */
static int words_of(const char *command)
{
	if (is_io(command))
		return 5;
	return !strcmp(command, "put") || !strcmp(command, "load") ? 4 : 3;
}

/* set: prints what failed, or `ok`. */
static void set(const char *directory, char **settings)
{
	for (; *settings; settings++) {
		const char *text = strchr(*settings, '=');
		char path[4096], *value;

		if (!text || text == *settings)
			die("%s: no ATTRIBUTE=TEXT", *settings);
		snprintf(path, sizeof(path), "%s/%.*s", directory, (int)(text - *settings),
			 *settings);
		value = unescape(strdup(text + 1));
		if (write_file(path, value) < 0) {
			printf("%s: %s\n", *settings, verdict(-1));
			return;
		}
		free(value);
	}
	puts("ok");
}

int main(int count, char **words)
{
	const char *command = count > 1 ? words[1] : "";

	if (!strcmp(command, "fail-nth") && count > 4) {
		fail_each(atol(words[2]), atol(words[3]), words + 4);
	} else if (!strcmp(command, "show")) {
		for (words += 2; *words; words++)
			printf("%s=%s\n", strrchr(*words, '/') + 1, show(*words));
	} else if (!strcmp(command, "set") && count > 2) {
		set(words[2], words + 3);
	} else if (count == words_of(command)) {
		if (!strcmp(command, "put"))
			unescape(words[3]);
		puts(verdict(call(words + 1, 0)));
	} else {
		die("usage: syscall CALL; see its source");
	}
	return 0;
}
