# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Compares the results of rnull with those of null_blk in the same guest, line by line.

# result KEY: prints standard input in one line.
result() {
	printf '%s: %s\n' "$1" "$(tr '\n' ' ')"
}

# put_each KEY DIRECTORY LINE...: for each line "ATTRIBUTE TEXT", the result and the value then.
put_each() {
	local key=$1 dir=$2 line file

	shift 2
	for line; do
		file=$dir/${line%% *}
		echo "$(syscall put "$file" "${line#* }") $(<"$file")" | result "$key$line"
	done
}

# both FUNCTION: compares the lines that it prints for null_blk and for rnull.
both() {
	local theirs ours

	use null_blk
	"$1" >/tmp/theirs
	use rnull
	"$1" >/tmp/ours
	while IFS= read -r -u 3 theirs && IFS= read -r -u 4 ours; do
		equal "$1: as null_blk: ${theirs%%: *}" "$ours" "$theirs"
	done 3</tmp/theirs 4</tmp/ours
	equal "$1: as many results as from null_blk" "$(wc -l </tmp/ours)" "$(wc -l </tmp/theirs)"
	check "$1: there were some" test -s /tmp/theirs
}
