# SPDX-License-Identifier: GPL-2.0
# What the scripts for rnvme share: the controllers, and what the driver does with them.
# shellcheck shell=sh disable=SC2034 # variables for the scripts that read this

# shellcheck source=tools/testing/rnull/guest/lib.sh
. "$here/lib.sh"

pci=/sys/bus/pci
rnvme=$pci/drivers/rnvme

# controllers: the addresses of all NVMe controllers.
controllers() {
	for device in "$pci"/devices/*; do
		[ "$(cat "$device/class")" != 0x010802 ] || basename "$device"
	done
}

# bound ADDRESS: the driver of a device.
bound() {
	[ ! -e "$pci/devices/$1/driver" ] || basename "$(readlink "$pci/devices/$1/driver")"
}

# bind ADDRESS: gives a device to the driver; prints the driver that it has then.
bind() {
	echo rnvme >"$pci/devices/$1/driver_override"
	echo "$1" >"$pci/drivers_probe" 2>/dev/null
	bound "$1"
}

unbind() {
	echo "$1" >"$rnvme/unbind"
	bound "$1"
}

# break_down ADDRESS: the registers of a controller are zeros from now on, until it is bound again. That
# is what QEMU has where nothing is; it would be ones on a machine.
break_down() {
	printf '\0\0' | dd of="$pci/devices/$1/config" bs=1 seek=4 conv=notrunc status=none
}

# said ADDRESS: what the driver has logged of a controller.
said() {
	dmesg | sed -n "s/.*rnvme $1: //p"
}

# count ADDRESS TEXT: how often the driver has logged that.
count() {
	said "$1" | grep -cF "$2"
}

# wait_for COMMAND...: until it succeeds, at most for ten seconds, times the scale.
wait_for() {
	for _ in $(seq $((100 * scale))); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

# is_busy DISK: whether there is a load now, which reads and writes more than udev does. What is in
# flight at a moment says little, as an emulated controller may answer before anything else runs.
is_busy() {
	ended=$(ios "$1")
	sleep 0.2
	[ $(($(ios "$1") - ended)) -ge 64 ]
}

# ios DISK: how many reads and writes have ended.
ios() {
	awk '{ print $1 + $5 }' "/sys/block/$1/stat"
}

# has_said ADDRESS TEXT COUNT: whether the driver has logged that so often.
has_said() {
	[ "$(count "$1" "$2")" -ge "$3" ]
}

# bind_all ADDRESS COUNT: as bind; waits until the controller has as many disks, and says so if it does
# not get them.
bind_all() {
	bind "$1"
	wait_for has_disks_of "$1" "$2" || echo "it has not $2 disks"
}

# has_disks_of ADDRESS COUNT: other controllers may have disks, too.
has_disks_of() {
	[ "$(find "$pci/devices/$1"/rnvme/*/ -maxdepth 1 -name 'rnvme*n*' 2>/dev/null | wc -l)" = "$2" ]
}

has_disks() {
	[ "$(find /dev -maxdepth 1 -name 'rnvme*n*' -type b | wc -l)" = "$1" ]
}

# take ADDRESS DRIVER: gives the controller to a driver, and waits for its disks.
take() {
	[ ! -e "$pci/devices/$1/driver" ] || echo "$1" >"$pci/devices/$1/driver/unbind"
	echo "$2" >"$pci/devices/$1/driver_override"
	echo "$1" >"$pci/drivers_probe"
	wait_for has_all "$2"
}

# has_all DRIVER: C's driver makes a disk of the namespace with large blocks, too, which has no size.
has_all() {
	[ "$(cat /sys/block/"$1"*/size 2>/dev/null | grep -cvx 0)" = 18 ]
}

# disk_of DRIVER SECTORS: the disk with that size. C's driver numbers disks as it finds them.
disk_of() {
	grep -lx "$2" /sys/block/"$1"*/size | cut -d/ -f4
}

# vectors: the number of interrupts with a handler of the driver.
vectors() {
	grep -c 'rnvme[0-9]*q0' /proc/interrupts
}

# interrupts: how many of them were handled.
interrupts() {
	awk '/rnvme[0-9]*q0/ { for (i = 2; $i ~ /^[0-9]+$/; i++) sum += $i } END { print sum + 0 }' \
		/proc/interrupts
}

# can_master ADDRESS: is the device allowed to access memory? Bit 2 of the command register.
can_master() {
	command=$(od -An -tu1 -j4 -N1 "$pci/devices/$1/config")
	echo $((command >> 2 & 1))
}

# The one that comes and goes is not among these.
hot=0000:00:10.0
first='' second=''
for address in $(controllers); do
	[ "$address" != $hot ] || continue
	if [ "$first" ]; then second=$address; else first=$address; fi
done
[ "$second" ] || {
	not_ok "nvme" "this guest has no two NVMe controllers"
	finish
}

module=rnvme_mod
