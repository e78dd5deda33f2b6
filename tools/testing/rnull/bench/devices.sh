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

# The controllers of the guest, by address: driver, shadow doorbells or not.
controllers='0000:00:10.0 nvme off
0000:00:11.0 rnvme off
0000:00:12.0 nvme on
0000:00:13.0 rnvme on'

# bind_controller ADDRESS DRIVER: prints the name of the disk that it has then.
bind_controller() {
	ls /sys/block >/tmp/before
	echo "$2" >"/sys/bus/pci/devices/$1/driver_override"
	echo "$1" >/sys/bus/pci/drivers_probe
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		for disk in /sys/block/*; do
			disk=${disk##*/}
			grep -qx "$disk" /tmp/before || { echo "$disk"; return 0; }
		done
		sleep 1
	done
	return 1
}

# bind_controllers: gives each controller to its driver. Beside the queues that interrupt, a controller
# has one that is polled: only I/O that asks for that is in it.
bind_controllers() {
	echo "$controllers" | while read -r address _ _; do
		echo none >"/sys/bus/pci/devices/$address/driver_override"
	done
	modprobe nvme poll_queues=1
	modprobe rnvme_mod poll_queues=1
	echo "$controllers" | while read -r address driver dbcs; do
		bind_controller "$address" "$driver" >"/tmp/disk-$driver-$dbcs" ||
			echo "failed $driver has no disk at $address"
	done
}

# disk_of DRIVER on|off: prints the name of its disk, with shadow doorbells or without.
disk_of() {
	cat "/tmp/disk-$1-$2"
}

# quiet DISK: no I/O is accounted, delayed or sorted, as far as the queue can do that.
quiet() {
	queue=/sys/block/$1/queue
	echo 0 >"$queue/iostats"
	[ ! -e "$queue/wbt_lat_usec" ] || echo 0 >"$queue/wbt_lat_usec" 2>/dev/null || :
	[ ! -w "$queue/scheduler" ] || echo none >"$queue/scheduler"
}
