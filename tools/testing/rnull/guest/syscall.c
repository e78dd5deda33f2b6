// SPDX-License-Identifier: GPL-2.0
/*
 * Makes system calls whose exact errno counts.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util.h"

/* put PATH TEXT: write a text to an attribute in one call. */
static long put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	long result;

	if (fd < 0)
		return fd;
	result = write(fd, text, strlen(text));
	if (result >= 0 && (size_t)result != strlen(text))
		die("short write %ld", result);
	if (result < 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return result;
}

/* load FILE PARAMETERS: insert a module. */
static long load(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("open %s: %s", path, verdict(-1));
	return syscall(SYS_finit_module, fd, parameters, 0);
}

/* Undoes the escapes of a text on the command line: \n, \t, \e for nothing at all. */
static char *unescape(const char *text)
{
	char *out = strdup(text), *to = out;

	for (; *text; text++) {
		if (*text != '\\') {
			*to++ = *text;
			continue;
		}
		text++;
		if (*text == 'n')
			*to++ = '\n';
		else if (*text == 't')
			*to++ = '\t';
		else if (*text == 's')
			*to++ = ' ';
	}
	*to = 0;
	return out;
}

/* The value of an attribute, or why it cannot be read. */
static const char *get(const char *path)
{
	static char text[4097];
	int fd = open(path, O_RDONLY);
	ssize_t length = fd < 0 ? fd : read(fd, text, sizeof(text) - 1);

	if (length < 0)
		return verdict(-1);
	close(fd);
	text[length] = 0;
	text[strcspn(text, "\n")] = 0;
	return text;
}

/* put-all: for every line "PATH TEXT" of standard input, what writing it said, what is there then. */
static int put_all(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&line, &room, stdin)) > 0) {
		char *text;

		line[strcspn(line, "\n")] = 0;
		text = strchr(line, ' ');
		if (!text)
			die("put-all: no text in '%s'", line);
		*text++ = 0;
		printf("%s ", verdict(put(line, unescape(text))));
		printf("%s\n", get(line));
		fflush(stdout);
	}
	return 0;
}

/* A file that can be written, read without an open in between. */
static int open_knob(const char *path)
{
	int fd = open(path, O_RDWR);

	if (fd < 0)
		die("%s: %s", path, verdict(-1));
	return fd;
}

static void turn(int knob, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	if (write(knob, text, strlen(text)) < 0)
		die("a knob cannot be turned to %ld: %s", value, verdict(-1));
}

/*
 * no-memory DISK OFFSET BYTES, no-memory-fua DISK OFFSET BYTES, no-memory-flush DISK
 *
 * A write, or a flush if it is of no bytes, during which no page can be had in the whole system: who queues it may be
 * another task.
 */
static int no_memory(const char *path, uint64_t offset, size_t bytes, int flags)
{
	struct iovec data = { NULL, bytes };
	int knob = open_knob("/sys/kernel/debug/fail_page_alloc/probability");
	int fd = open(path, O_WRONLY | O_DIRECT);
	const char *said;
	ssize_t done;

	if (fd < 0 || posix_memalign(&data.iov_base, 65536, bytes))
		die("open %s: %s", path, verdict(-1));
	memset(data.iov_base, 1, bytes);
	turn(knob, 100);
	done = bytes ? pwritev2(fd, &data, 1, offset, flags) : fdatasync(fd);
	said = verdict(done);
	turn(knob, 0);
	puts(said);
	return 0;
}

#define IS(name, n) (!strcmp(command, name) && arguments == (n))
#define N(i) strtoull(w[i], NULL, 0)

int main(int count, char **words)
{
	const char *command = count > 1 ? words[1] : "";
	char **w = words + 2;
	int arguments = count - 2;

	if (IS("put-all", 0))
		return put_all();
	if (IS("no-memory", 3))
		return no_memory(w[0], N(1), N(2), 0);
	if (IS("no-memory-fua", 3))
		return no_memory(w[0], N(1), N(2), RWF_DSYNC);
	if (IS("no-memory-flush", 1))
		return no_memory(w[0], 0, 0, 0);
	if (IS("put", 2))
		puts(verdict(put(w[0], unescape(w[1]))));
	else if (IS("load", 2))
		puts(verdict(load(w[0], w[1])));
	else if (IS("unload", 1))
		puts(verdict(syscall(SYS_delete_module, w[0], O_NONBLOCK)));
	else if (IS("mkdir", 1))
		puts(verdict(mkdir(w[0], 0755)));
	else if (IS("rmdir", 1))
		puts(verdict(rmdir(w[0])));
	else if (!strcmp(command, "show"))
		for (; *w; w++)
			printf("%s=%s\n", strrchr(*w, '/') + 1, get(*w));
	else if (IS("open", 1))
		puts(verdict(open(w[0], O_RDONLY)));
	else
		die("syscall: no command '%s' with %d arguments", command, arguments);
	return 0;
}
