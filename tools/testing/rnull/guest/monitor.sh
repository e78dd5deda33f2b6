# SPDX-License-Identifier: GPL-2.0
# What scripts do with QEMU's monitor: a controller that comes and goes, and a disk that is slow.
# shellcheck shell=bash disable=SC2154 # variables of nvme.sh, which is read first

device=$pci/devices/$hot
port=/dev/ttyS3

# qmp COMMAND [ARGUMENTS]: has QEMU do something; prints ok or the error.
qmp() {
	local line

	printf '{"execute": "%s", "arguments": {%s}}\n' "$1" "${2-}" >&9
	while read -r -t 10 -u 9 line; do
		case $line in
		*'"error":'*) echo "$line"; return ;;
		*'"return":'*) echo ok; return ;;
		esac
	done
	echo "QEMU does not answer"
}

# open_monitor: what the port has echoed until now is no command; a byte that is in no JSON ends it.
open_monitor() {
	local line

	stty -F $port raw -echo
	exec 9<>$port
	printf '\377\n{"execute": "qmp_capabilities"}\n' >&9
	while read -r -t 1 -u 9 line; do
		:
	done
}

# throttle REQUESTS: how many requests QEMU does in a second; 0 for as many as it can.
throttle() {
	qmp qom-set "\"path\": \"/objects/slow\", \"property\": \"limits\", \"value\": {\"iops-total\": $1}"
}

# throttle_bytes BYTES: how many of them QEMU does in a second. What is larger is done, but then the next
# one waits for as long as that should have taken.
throttle_bytes() {
	qmp qom-set "\"path\": \"/objects/slow\", \"property\": \"limits\", \"value\": {\"bps-total\": $1}"
}

# plug: the namespace is that of the controller which was unplugged, with its data.
plug() {
	[ "$(qmp device_add "\"driver\": \"nvme\", \"id\": \"hot\", \"serial\": \"hot\", \"addr\": \"0x10\",
		\"mdts\": 5, \"subsys\": \"hot-system\"" | head -n 1)" = ok ]
}

is_there() {
	[ -e "$device" ]
}

is_gone() {
	! is_there
}
