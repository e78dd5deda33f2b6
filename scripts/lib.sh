# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# The few words that all scripts here share: where things are, how to speak, how to fail, how to
# wait for each other.

RNULL_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
RNULL_CACHE=${RNULL_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rnull}
RNULL_MIRROR=${RNULL_MIRROR:-}
# The Linux release that this repository is written for; any 7.3.y is one.
RNULL_BASE=7.3
export RNULL_TOP RNULL_CACHE RNULL_MIRROR RNULL_BASE

# say TEXT...: one line about what is going on; stderr, because stdout carries answers. Below a
# script that sets RNULL_BEGAN, the second at which it began, the line says how long that has been
# running.
say() {
	local clock=''
	[[ ! ${RNULL_BEGAN:-} ]] ||
		printf -v clock '[%d:%02d] ' $(((EPOCHSECONDS - RNULL_BEGAN) / 60)) \
			$(((EPOCHSECONDS - RNULL_BEGAN) % 60))
	printf 'rnull: %s%s\n' "$clock" "$*" >&2
}

# die SENTENCE...: what happened and what to do about it, then the end.
die() { printf 'rnull: error: %s\n' "$*" >&2; exit 1; }

# seconds_since START: elapsed time for people, e.g. "1m05s".
seconds_since() {
	local s=$((SECONDS - $1))
	if ((s >= 60)); then printf '%dm%02ds' $((s / 60)) $((s % 60)); else printf '%ds' "$s"; fi
}

# hash_text: the first 12 digits of the hash of what is on stdin, for the names of cached things.
hash_text() { sha256sum | cut -c1-12; }

# need_space GIGABYTES DIR: stops before a full disk does.
need_space() {
	local want=$1 dir=$2 have
	have=$(df -P -B 1M "$dir" | awk 'NR == 2 { print $4 }')
	((have >= want * 1024)) && return
	die "$dir has ${have} MB free where ${want} GB are needed;" \
		"free some space, or set RNULL_CACHE to a directory on a larger disk"
}

# why_failed DIR: the likely reason of a failed write below DIR, as the middle of a sentence.
why_failed() {
	local have
	have=$(df -P -B 1M "$1" | awk 'NR == 2 { print $4 }')
	if ((have < 64)); then printf 'the disk that holds %s is full' "$1"; else printf \
		'see the lines above'; fi
}

# logged LOG COMMAND...: run with all output in LOG; if it fails, show the end of LOG.
logged() {
	local log=$1 status=0
	shift
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 </dev/null || status=$?
	((status == 0)) || tail -n 25 "$log" | cut -c1-300 | sed 's/^/    /' >&2
	return "$status"
}

# lock NAME: hold a lock until this script ends; a lock its caller holds already is no obstacle.
lock() {
	local name=$1 fd
	[[ " ${RNULL_LOCKS:-} " != *" $name "* ]] || return 0
	mkdir -p "$RNULL_CACHE/locks"
	exec {fd}>"$RNULL_CACHE/locks/$name"
	if ! flock --nonblock "$fd"; then
		say "waiting for another run that holds $RNULL_CACHE/locks/$name"
		flock "$fd"
	fi
	export RNULL_LOCKS="${RNULL_LOCKS:-} $name"
}

# built_here TREE OUT IMAGE: whether TREE and OUT are as the build left them of which this checkout
# has IMAGE. All checkouts lay their source into the same TREE, and build in the same OUT.
built_here() {
	cmp -s "$3/manifest" <(cat "$1/.rnull-overlay/manifest" "$2/.fragments") &&
		cmp -s "$3/manifest" "$2/.manifest"
}

mkdir -p "$RNULL_CACHE" 2>/dev/null ||
	die "$RNULL_CACHE cannot be made; set RNULL_CACHE to a directory that can be written"
