# SPDX-License-Identifier: GPL-2.0
# The words in which a check reports its result; for bash, busybox ash, hosts, guests.
# shellcheck shell=sh

# ok NAME: the check passed.
ok() {
	echo "ok $1"
}

# not_ok NAME WHY: the check failed.
not_ok() {
	echo "not ok $1 - $2"
	failed=1
}

# skip NAME WHY: the check could not be made here.
skip() {
	echo "skip $1 - $2"
}

# check NAME COMMAND...: passes when the command does; its last line of output is the reason when it
# does not.
check() {
	check_name=$1
	shift
	if check_output=$("$@" 2>&1); then
		ok "$check_name"
	else
		not_ok "$check_name" "$(printf '%s\n' "$check_output" | tail -n 1)"
		printf '%s\n' "$check_output" | sed 's/^/    /'
	fi
}

# equal NAME FOUND EXPECTED
equal() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "found '$2', expected '$3'"
	fi
}

# finish: leaves with the status that the reports call for.
finish() {
	exit "${failed:-0}"
}
