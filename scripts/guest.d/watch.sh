# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Watches a guest while it runs, for scripts/guest, whose variables it uses; then judges it.
#
# shellcheck disable=SC2154

# The number that the guest reported under a name, or nothing.
reported() { awk -v name="$1" '$1 == name { print $2 + 0; exit }' "$dir/report" 2>/dev/null || :; }

# show_end LOG: the last lines of a console, if there is one.
show_end() {
	[[ ! -e $1 ]] || tail -n 25 "$1" | tr -d '\r' | sed 's/^/    /' >&2
}

# never TIMES: so often it was booted in vain.
never() {
	local log=$dir/console.$1
	show_end "$log"
	[[ ! $console || ! -e $log ]] || cp "$log" "$console"
	say "error: the guest was booted $1 times and did not come to its script; its console log" \
		"is $log"
	exit 124
}

# no_result STATUS: the guest ended without a word from its script.
no_result() {
	local status=$1
	show_end "$dir/console"
	if ((status == 124 || status == 137)); then
		say "error: the guest was stopped after its limit of $limit seconds; its console" \
			"log is $log"
		exit 124
	fi
	grep -v '^$' "$dir/qemu.log" | tee -a "$dir/console" >&2 || :
	! emulator_failed || blame_emulator
	say "error: the guest died before its script ended (QEMU's status $status); its console" \
		"log is $log"
	exit 125
}

# The script's result is worth nothing, good or bad.
blame_emulator() {
	say "error: QEMU's emulation failed, not the guest: $why; run it again (the console log" \
		"is $dir/console)"
	exit 123
}

# judge RESULT: the script's status, unless the kernel has something to add.
judge() {
	local result=$1 reports taint
	if ! reports=$("$here/guest.d/scan-log" "$dir/console" "${allow[@]}"); then
		printf '    %s\n' "${reports//$'\n'/$'\n'    }" >&2
		! emulator_failed || blame_emulator
		say "error: the kernel log has reports; all of it is in $log"
		((result)) || result=126
	fi
	taint=$(reported taint)
	if ((taint & ~allowed_taint)); then
		say "error: the kernel is tainted ($taint, where $allowed_taint is allowed); its" \
			"log is $log"
		((result)) || result=126
	fi
	exit "$result"
}

# Whether QEMU is at fault for what the kernel log says; sets why.
emulator_failed() {
	local fault
	[[ $accel != kvm ]] && fault=$("$here/guest.d/emulator-fault" "$dir/console" "${allow[@]}" \
		2>/dev/null) && why=$fault
}

# gone QEMU: waits until the guest has ended, or is as good as that; sets why then and returns
# false. Before its script begins a guest must go on to say something, for now and then an emulated
# one waits for an interrupt that never comes.
gone() {
	local late=$((SECONDS + whole / 4)) silence=$((whole / 12)) heard=$SECONDS length=0 now
	((silence >= 30)) || silence=30
	until timeout 5 tail --pid="$1" -s 0.1 -f /dev/null; do
		! emulator_failed || return 1
		[[ ! $(reported begun) ]] || continue
		now=$(stat -c %s "$dir/console" 2>/dev/null || echo 0)
		((now == length)) || length=$now heard=$SECONDS
		why="it took more than $((whole / 4)) seconds"
		((SECONDS < late)) || return 1
		why="its kernel said nothing for $silence seconds"
		((SECONDS - heard < silence)) || return 1
	done
}

# boot: runs QEMU to its end and sets status; returns false if the guest was stopped before its
# script began; sets why.
boot() {
	local qemu_pid
	"${run[@]}" </dev/null 2>"$dir/qemu.log" &
	qemu_pid=$!
	status=0
	if ! gone "$qemu_pid"; then
		# What runs it in the build root may wait for it with signals blocked, but takes it
		# along.
		kill -KILL "$qemu_pid"
		wait "$qemu_pid" 2>/dev/null || :
		[[ $(reported begun) ]] || return 1
		blame_emulator
	fi
	wait "$qemu_pid" || status=$?
}
