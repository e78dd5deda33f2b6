# SPDX-License-Identifier: GPL-2.0
# What the scripts of the guest share: the driver under test, its devices, what is left of it.
# shellcheck shell=sh disable=SC2034 # variables for the scripts that read this

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/testing/rnull/report.sh
. "$here/../report.sh"

config=/sys/kernel/config
# bash reads the output of a command through it; devtmpfs does not have it.
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
PATH=$PATH:$here

# use DRIVER: rnull, or null_blk to see what the C driver does in the same place.
use() {
	driver=$1
	case $driver in
	rnull)
		module=rnull_mod tree=$config/rnull disk=rnullb
		;;
	null_blk)
		module=null_blk tree=$config/nullb disk=nullb
		;;
	esac
	parameters=/sys/module/$module/parameters
}

use "${DRIVER:-rnull}"

# module_file NAME: where a module lies; of two with that name, the one that modprobe prefers.
module_file() {
	find "/lib/modules/$(uname -r)/updates" "/lib/modules/$(uname -r)/" -name "$1.ko*" 2>/dev/null | head -n 1
}

# load_module PARAMETERS: inserts the driver, says what the kernel says.
load_module() {
	modprobe configfs 2>/dev/null
	grep -q " $config " /proc/mounts || mount -t configfs configfs $config
	syscall load "$(module_file $module)" "$*"
}

# unload_module: removes it; a reference that is just being dropped is waited for.
unload_module() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		unloaded=$(syscall unload $module)
		[ "$unloaded" = EAGAIN ] || [ "$unloaded" = EBUSY ] || break
		sleep 0.2
	done
	echo "$unloaded"
}

# fresh PARAMETERS: a newly loaded driver, or the end of the script.
fresh() {
	[ ! -d /sys/module/$module ] || unload_module >/dev/null
	loaded=$(load_module "$@")
	[ "$loaded" = ok ] || {
		not_ok "load $module $*" "$loaded"
		finish
	}
}

# device NAME ATTRIBUTE=VALUE...: makes a device by configfs, powered on at last; prints the first thing that fails.
device() {
	device_dir=$tree/$1
	shift
	[ -d "$device_dir" ] || mkdir "$device_dir" || return
	for setting in "$@" power=1; do
		device_said=$(syscall put "$device_dir/${setting%%=*}" "${setting#*=}")
		[ "$device_said" = ok ] || {
			echo "$setting: $device_said"
			return 1
		}
	done
}

# too_large BLOCKSIZE: whether this kernel has no blocks of that size; without transparent huge pages they end at a page.
# Then a disk with them must be refused, which is checked instead.
too_large() {
	[ "$1" -gt 4096 ] && [ ! -d /sys/kernel/mm/transparent_hugepage ] || return 1
	equal "blocks of $1 are refused without huge pages" "$(device large size=16 "blocksize=$1")" "power=1: EINVAL"
	syscall rmdir "$tree/large" >/dev/null
}

# power NAME 0|1
power() {
	syscall put "$tree/$1/power" "$2"
}

# remove NAME: what rmdir of a device says.
remove() {
	syscall rmdir "$tree/$1"
}

# left_behind: everything by which the driver can still be seen after it went.
left_behind() {
	grep -w "$disk" /proc/devices
	ls -d /sys/block/$disk* /dev/$disk* /sys/module/$module "$tree" 2>/dev/null
	grep "^$module " /proc/modules
	true
}
