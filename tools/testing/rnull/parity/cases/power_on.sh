# SPDX-License-Identifier: GPL-2.0
# Prints the cases of a power-on: errors, messages, the files of the disk, its requests.
# shellcheck shell=bash

# Of several errors one is reported.
one=a23456789b23456789c23456789d2-1 two=a23456789b23456789c23456789d2-2

cat <<-EOF
case which error is reported first
device $one size=1
mkdir $two => ok
set $two/size 1
set $two/power 1 => EEXIST 0
attributes $two
set $two/blocksize 1000
set $two/power 1 => EINVAL 0
set $two/blocksize 4096
set $two/hw_queue_depth 0
set $two/power 1 => EINVAL 0
set $two/hw_queue_depth 8
set $two/power 1 => EEXIST 0
set $two/queue_mode 1
set $two/power 1 => EINVAL 0
set $two/queue_mode 2
set $two/shared_tags 1
set $two/power 1 => EEXIST 0
set $two/shared_tags 0
set $one/power 0 => ok 0
set $two/power 1 => ok 1
get $two/index => 0
set $one/power 1 => EEXIST 0
disks
rmdir $two => ok
set $one/power 1 => ok 1
case invalid parameters of a disk
load nr_devices=2 hw_queue_depth=0
traces =>
load nr_devices=2 shared_tags=1 hw_queue_depth=0
traces =>
load nr_devices=2 bs=1000 shared_tags=1
traces =>
load => ok
EOF

cat <<-EOF
case kernel log
load nr_devices=2 gb=1
log module loaded => 1
log disk DISK0 created => 1
log disk DISK1 created => 1
mkdir a => ok
set a/size 1
log created => 2
set a/power 1 => ok 1
log disk a created => 1
set a/power 1 => ok 1
set a/power 0 => ok 0
log created => 3
set a/blocksize 1000
set a/power 1 => EINVAL 0
log created => 3
set a/blocksize 512
set a/power 1 => ok 1
log disk a created => 2
read a 0 4096 => ok *
log timed out => 0
EOF

# Writes to the files of the disk, with what follows from them.

for settings in "" "memory_backed=1 discard=1 cache_size=1 blocksize=4096" \
	"poll_queues=0 hw_queue_depth=4" "shared_tags=1 submit_queues=2" \
	"max_sectors=64 rotational=1 fua=0 memory_backed=1 cache_size=1" \
	"shared_tag_bitmap=1 submit_queues=4 no_sched=1"; do
	echo "case the files of a disk with ${settings:-no settings}"
	echo "device a size=16 $settings"
	for setting in scheduler=none scheduler=mq-deadline scheduler=kyber \
		scheduler=abc nr_requests=2 nr_requests=4 nr_requests=100 nr_requests=0 \
		scheduler=none nr_requests=64 nr_requests=100000 max_sectors_kb=1 \
		max_sectors_kb=32 max_sectors_kb=100000 max_sectors_kb=0 discard_max_bytes=0 \
		discard_max_bytes=1048576 discard_max_bytes=1 'write_cache=write\sthrough' \
		'write_cache=write\sback' write_cache=abc io_poll=1 io_poll_delay=-1 \
		rotational=1 rotational=0 iostats=0 iostats=1 io_timeout=0 io_timeout=7000 \
		nomerges=2 rq_affinity=2 rq_affinity=0 wbt_lat_usec=0 wbt_lat_usec=-1 \
		read_ahead_kb=64 add_random=1 stable_writes=1 write_zeroes_max_bytes=1 \
		iostats_passthrough=1; do
		# Any answer, because it depends on the kernel; but the same of both drivers.
		echo "sysfs a queue/${setting%%=*} ${setting#*=} => *"
	done
	cat <<-EOF
	sysfs a ro 1 => *
	sysfs a size 5 => *
	disk a
	write a 0 65536 1 => ok
	write a 65536 4096 1 fua => ok
	flush a => ok
	read a 0 131072
	counts a
	set a/power 0
	set a/power 1
	disk a
	counts a
	EOF
done

cat <<-EOF
case power on reads the beginning of the disk
mkdir a => ok
set a/size 16
set a/badblocks_once 1
set a/badblocks +0-0
set a/badblocks +9-9
set a/badblocks +32767-32767
set a/power 1 => ok 1
get a/badblocks
counts a
case power on reads the beginning of a disk of large blocks
mkdir a => ok
set a/size 16
set a/blocksize 65536
set a/badblocks +100-100
set a/power 1 => ok 1
counts a
EOF
# How transfers are split into requests.
for settings in "" "blocksize=4096" "max_sectors=64" "virt_boundary=1" \
	"memory_backed=1 discard=1 max_sectors=8" "memory_backed=1 cache_size=1" \
	"memory_backed=1 cache_size=1 fua=0" "blocksize=65536 max_sectors=300"; do
	cat <<-EOF
	case requests of a disk with ${settings:-no settings}
	device a size=16 $settings
	counts a
	read a 0 1048576 => ok *
	counts a
	write a 65536 524288 1 => *
	counts a
	write a 0 65536 1 fua => ok
	discard a 0 4194304 => *
	zero a 0 1048576 => ok
	flush a => ok
	counts a
	EOF
done
