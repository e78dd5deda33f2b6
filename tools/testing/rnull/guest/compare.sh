# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Asks null_blk what rnull is asked in the same guest, to compare the answers line by line.

# answer KEY: what comes on standard input, in one line.
answer() {
	printf '%s: %s\n' "$1" "$(tr '\n' ' ')"
}

# ask_all KEY DIRECTORY: puts each line "ATTRIBUTE TEXT" of standard input, shows what was said, what is there then.
ask_all() {
	local line

	while IFS= read -r line; do
		echo "$2/$line" | syscall put-all | answer "$1$line"
	done
}

# both FUNCTION: compares line by line what it prints for null_blk, for rnull.
both() {
	local theirs ours

	use null_blk
	"$1" >/tmp/theirs
	use rnull
	"$1" >/tmp/ours
	while IFS= read -r -u 3 theirs && IFS= read -r -u 4 ours; do
		equal "$1: as null_blk: ${theirs%%: *}" "$ours" "$theirs"
	done 3</tmp/theirs 4</tmp/ours
	equal "$1: as many answers as from null_blk" "$(wc -l </tmp/ours)" "$(wc -l </tmp/theirs)"
	check "$1: there were some" test -s /tmp/theirs
}
