# SPDX-License-Identifier: GPL-2.0
# What the lints share: which files are ours.
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../.." && pwd)
cd "$top" || exit 1
# shellcheck source=tools/testing/rnull/report.sh
. tools/testing/rnull/report.sh

# sources FIND-EXPRESSION...: our files for which the expression holds, without build products.
sources() {
	find . \( -name .git -o -name generated -o -path './rust/*/generated' -o -name \
		.tmp_versions -o -name target \) -prune -o \
		-type f ! -name '*.mod.c' ! -name '*.o' ! -name '*.ko' \( "$@" \) -print |
			sed 's,^\./,,' | sort
}

rust_sources() {
	sources -name '*.rs' ! -path '*/compile-fail/*'
}

# A script has an interpreter in its first line.
shell_scripts() {
	sources -name '*.sh'
	sources ! -name '*.sh' -perm -u+x -exec grep -q -m 1 -E '^#!(/usr)?/bin/(env )?(ba|da|)sh' \
		{} \;
}

# each NAME COMMAND FILE...: one check per file, and a failure when there is no file to check.
each() {
	local name=$1 command=$2 file

	shift 2
	[ $# -gt 0 ] || not_ok "$name" "there is no file to check"
	for file; do
		check "$name $file" "$command" "$file"
	done
}
