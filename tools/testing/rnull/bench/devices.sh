# SPDX-License-Identifier: GPL-2.0
# Makes the null block devices of the benchmark.
# shellcheck shell=sh

# subsystem DRIVER: the configfs directory in which its devices are made.
subsystem() {
	case $1 in
	null_blk) echo /sys/kernel/config/nullb ;;
	*) echo "/sys/kernel/config/$1" ;;
	esac
}

# configure DRIVER NAME ATTRIBUTE=VALUE...: makes a device.
configure() {
	dir=$(subsystem "$1")/$2
	made=$2
	shift 2
	mkdir "$dir" || return
	for pair in "$@" power=1; do
		echo "${pair#*=}" >"$dir/${pair%%=*}" || return
	done
	quiet "$made"
}

# quiet DISK: no I/O is accounted, delayed or sorted, as far as the queue can do that.
quiet() {
	queue=/sys/block/$1/queue
	echo 0 >"$queue/iostats"
	[ ! -e "$queue/wbt_lat_usec" ] || echo 0 >"$queue/wbt_lat_usec" 2>/dev/null || :
	[ ! -w "$queue/scheduler" ] || echo none >"$queue/scheduler"
}
