# SPDX-License-Identifier: GPL-2.0
# Runs fio jobs on disks of two drivers, for the scripts of the demonstration.
# shellcheck shell=bash

# fio_on DEVICE JOB: runs a job, leaves its result in /tmp/result.json, fails if fio or any I/O
# failed.
fio_on() {
	DEVICE=$1 fio --output-format=json --output=/tmp/result.json "$2" 2>/tmp/fio.err || {
		cat /tmp/fio.err
		return 1
	}
	[[ $(field '[.jobs[].error, .jobs[].total_err // 0] | add') == 0 ]]
}

# field EXPRESSION: a number out of fio's result; fio may print lines before the JSON.
field() { sed -n '/^{/,$p' /tmp/result.json | jq -r "$1"; }

ios() { field '[.jobs[] | .read.total_ios, .write.total_ios] | add'; }
verified() { field '[.jobs[] | select(."job options".verify) | .read.io_bytes] | add // 0'; }
rate() { field '[.jobs[] | (.read.total_ios + .write.total_ios) * 1000 / ([.read.runtime, .write.runtime, 1] | max)]
	| add | floor'; }

emulated() { grep -q TCG /proc/cpuinfo; }
# ratio OTHER OURS: of I/Os per second, where these mean something.
ratio() {
	if emulated; then echo -; else awk -v b="$1" -v a="$2" \
		'BEGIN { printf b ? "%.2f" : "-", a / (b ? b : 1) }'; fi
}

# verify DEVICE JOBS: writes, reads back and verifies; fails if that does.
verify() {
	local errors=0
	fio_on "$1" "$2/write-verify.fio" || errors=1
	echo "$1: $(ios) I/Os, $(verified) bytes written and verified (crc32c), errors: $errors"
	return $errors
}

# table C DEVICE RUST DEVICE JOBS: each job on a disk of both drivers, side by side; fails if one does.
table() {
	local c=$1 rust=$3 job row rates device errors status=0
	echo
	printf '%-18s | %10s %6s %10s | %10s %6s %10s | %s\n' '' "$c" errors verified "$rust" errors \
		verified "$rust /"
	printf '%-18s | %10s %6s %10s | %10s %6s %10s | %s\n' 'fio job' I/Os '' bytes I/Os '' bytes \
		"$c"
	for job in "$5"/*.fio; do
		row=() rates=()
		for device in "$2" "$4"; do
			errors=0
			fio_on "$device" "$job" || errors=1 status=1
			row+=("$(ios)" "$errors" "$(verified)")
			rates+=("$(rate)")
		done
		printf '%-18s | %10s %6s %10s | %10s %6s %10s | %s\n' "$(basename "$job" .fio)" \
			"${row[@]}" \
			"$(ratio "${rates[@]}")"
	done
	echo
	return $status
}
