# SPDX-License-Identifier: GPL-2.0
# What the scripts of the guests share: the driver under test, its devices, what is left of it.
# shellcheck shell=sh disable=SC2034 # variables for the scripts that read this

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/testing/rnull/report.sh
. "$here/../report.sh"

config=/sys/kernel/config
mib=1048576
# A factor for how long to wait for something, as for the limits of suites.
scale=${RNULL_TIMEOUT_SCALE:-1}
# bash reads the output of a command through it; devtmpfs does not have it.
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
PATH=$PATH:$here

# use DRIVER: rnull, or null_blk to compare with the C driver.
use() {
	driver=$1
	case $driver in
	rnull) module=rnull_mod tree=$config/rnull disk=rnullb ;;
	null_blk) module=null_blk tree=$config/nullb disk=nullb ;;
	esac
	parameters=/sys/module/$module/parameters
}

use "${DRIVER:-rnull}"

mount_configfs() {
	modprobe configfs 2>/dev/null
	grep -q " $config " /proc/mounts || mount -t configfs configfs $config
}

# module_file NAME: the file of a module; of two with that name, the one that modprobe prefers.
module_file() {
	find "/lib/modules/$(uname -r)/updates" "/lib/modules/$(uname -r)/" -name "$1.ko*" \
		2>/dev/null | head -n 1
}

# load NAME PARAMETERS: inserts a module; prints the result.
load() {
	syscall load "$(module_file "$1")" "$2"
}

# load_module PARAMETERS: inserts the driver, with those of `bios` in front; prints the result.
load_module() {
	mount_configfs
	load $module "${DEFAULTS:+$DEFAULTS }$*"
}

# unload_module: removes the driver; retries for a moment while a reference is being dropped.
unload_module() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		unloaded=$(syscall unload $module)
		[ "$unloaded" = EAGAIN ] || [ "$unloaded" = EBUSY ] || break
		sleep 0.2
	done
	echo "$unloaded"
}

# fresh PARAMETERS: a newly loaded driver; ends the script if it does not load.
fresh() {
	[ ! -d /sys/module/$module ] || unload_module >/dev/null
	loaded=$(load_module "$@")
	[ "$loaded" = ok ] || {
		not_ok "load $module $*" "$loaded"
		finish
	}
}

# put DIRECTORY ATTRIBUTE=VALUE...: writes attributes in this order; prints the first that fails.
put() {
	put_said=$(syscall set "$@")
	[ "$put_said" = ok ] || {
		echo "$put_said"
		return 1
	}
}

# device NAME ATTRIBUTE=VALUE...: makes a device if there is none, and powers it on.
device() {
	device_dir=$tree/$1
	shift
	[ -d "$device_dir" ] || mkdir "$device_dir" || return
	put "$device_dir" "$@" power=1
}

# too_large BLOCKSIZE: whether this kernel has no blocks of that size: without transparent huge
# pages they end at a page. Then a disk with them must be refused, which is checked instead.
too_large() {
	[ "$1" -gt 4096 ] && [ ! -d /sys/kernel/mm/transparent_hugepage ] || return 1
	equal "blocks of $1 are refused without huge pages" \
		"$(device large size=16 "blocksize=$1")" "power=1: EINVAL"
	syscall rmdir "$tree/large" >/dev/null
}

# power NAME 0|1
power() {
	syscall put "$tree/$1/power" "$2"
}

# remove NAME: the result of rmdir of a device.
remove() {
	syscall rmdir "$tree/$1"
}

# prepare_faults: makes failslab and fail_page_alloc silent, and valid for all allocations.
prepare_faults() {
	for knob in failslab fail_page_alloc; do
		knob=/sys/kernel/debug/$knob
		[ -d $knob ] || return
		echo 0 >$knob/verbose
		echo N >$knob/ignore-gfp-wait
	done
}

# fio_verify DISK OPTION...: writes to a disk with fio, reads back and verifies.
fio_verify() {
	fio_disk=/dev/$1
	shift
	fio --name=verify --filename="$fio_disk" --bs=4k --direct=1 --verify=crc32c --do_verify=1 \
		--verify_fatal=1 --thread --group_reporting --minimal "$@"
}

# fio_load DISK OPTION...: random I/O for a minute, or until it is stopped.
fio_load() {
	fio_disk=/dev/$1
	shift
	exec fio --name=load --filename="$fio_disk" --allow_file_create=0 --bs=4k --direct=1 --ioengine=libaio \
		--iodepth=16 --rw=randread --size=4M --time_based --runtime=60 --thread \
		--group_reporting --minimal "$@" >/dev/null 2>&1
}

# left_behind: everything by which the driver can still be seen after it was unloaded.
left_behind() {
	grep -w "$disk" /proc/devices
	ls -d /sys/block/$disk* /dev/$disk* /sys/module/$module "$tree" 2>/dev/null
	grep "^$module " /proc/modules
	true
}

# finish_unloaded NAME: the last checks of a script.
finish_unloaded() {
	equal "$1: unload" "$(unload_module)" ok
	equal "$1: nothing is left" "$(left_behind)" ""
	finish
}
