# SPDX-License-Identifier: GPL-2.0
# Prints the questions about what else a power-on does: which failure comes first, what is said, what sysfs takes then.
# shellcheck shell=bash

# Of several reasons to fail the first counts.
failures() {
	local one=a23456789b23456789c23456789d2-1 two=a23456789b23456789c23456789d2-2

	cat <<-EOF
	case the first reason to fail
	device $one size=1
	mkdir $two => ok
	put $two/size 1
	put $two/power 1 => EEXIST 0
	values $two
	put $two/blocksize 1000
	put $two/power 1 => EINVAL 0
	put $two/blocksize 4096
	put $two/hw_queue_depth 0
	put $two/power 1 => EINVAL 0
	put $two/hw_queue_depth 8
	put $two/power 1 => EEXIST 0
	put $two/queue_mode 1
	put $two/power 1 => EINVAL 0
	put $two/queue_mode 2
	put $two/shared_tags 1
	put $two/power 1 => EEXIST 0
	put $two/shared_tags 0
	put $one/power 0 => ok 0
	put $two/power 1 => ok 1
	get $two/index => 0
	put $one/power 1 => EEXIST 0
	disks
	rmdir $two => ok
	put $one/power 1 => ok 1
	case a disk made by parameters that cannot be made
	load nr_devices=2 hw_queue_depth=0
	left =>
	load nr_devices=2 shared_tags=1 hw_queue_depth=0
	left =>
	load nr_devices=2 bs=1000 shared_tags=1
	left =>
	load => ok
	EOF
}

messages() {
	cat <<-EOF
	case what the kernel log says
	load nr_devices=2 gb=1
	log module loaded => 1
	log disk DISK0 created => 1
	log disk DISK1 created => 1
	mkdir a => ok
	put a/size 1
	log created => 2
	put a/power 1 => ok 1
	log disk a created => 1
	put a/power 1 => ok 1
	put a/power 0 => ok 0
	log created => 3
	put a/blocksize 1000
	put a/power 1 => EINVAL 0
	log created => 3
	put a/blocksize 512
	put a/power 1 => ok 1
	log disk a created => 2
	read a 0 4096 => ok *
	log timed out => 0
	EOF
}

# What may be written to the disk's files, and what comes of it.
effects() {
	local settings setting

	for settings in "" "memory_backed=1 discard=1 cache_size=1 blocksize=4096" "poll_queues=0 hw_queue_depth=4" \
		"shared_tags=1 submit_queues=2" "max_sectors=64 rotational=1 fua=0 memory_backed=1 cache_size=1" \
		"shared_tag_bitmap=1 submit_queues=4 no_sched=1"; do
		printf '%s\n' "case the files of a disk with ${settings:-no settings}" "device a size=16 $settings"
		for setting in scheduler=none scheduler=mq-deadline scheduler=kyber scheduler=abc nr_requests=2 nr_requests=4 \
			nr_requests=100 nr_requests=0 scheduler=none nr_requests=64 nr_requests=100000 max_sectors_kb=1 max_sectors_kb=32 \
			max_sectors_kb=100000 max_sectors_kb=0 discard_max_bytes=0 discard_max_bytes=1048576 discard_max_bytes=1 \
			'write_cache=write\sthrough' 'write_cache=write\sback' write_cache=abc io_poll=1 io_poll_delay=-1 rotational=1 \
			rotational=0 iostats=0 iostats=1 io_timeout=0 io_timeout=7000 nomerges=2 rq_affinity=2 rq_affinity=0 \
			wbt_lat_usec=0 wbt_lat_usec=-1 read_ahead_kb=64 add_random=1 stable_writes=1 write_zeroes_max_bytes=1 \
			iostats_passthrough=1; do
			# What cannot be set in any kernel or in this one is answered by both in the same way.
			echo "sysfs a queue/${setting%%=*} ${setting#*=} => *"
		done
		printf '%s\n' "sysfs a ro 1 => *" "sysfs a size 5 => *" "disk a" "write a 0 65536 1 => ok" "write a 65536 4096 1 fua => ok" \
			"flush a => ok" "read a 0 131072" "counts a" "put a/power 0" "put a/power 1" "disk a" "counts a"
	done

	cat <<-EOF
	case power on reads the beginning of the disk
	mkdir a => ok
	put a/size 16
	put a/badblocks_once 1
	put a/badblocks +0-0
	put a/badblocks +9-9
	put a/badblocks +32767-32767
	put a/power 1 => ok 1
	get a/badblocks
	counts a
	case power on reads the beginning of a disk of large blocks
	mkdir a => ok
	put a/size 16
	put a/blocksize 65536
	put a/badblocks +100-100
	put a/power 1 => ok 1
	counts a
	EOF
	# How requests are divided.
	for settings in "" "blocksize=4096" "max_sectors=64" "virt_boundary=1" "memory_backed=1 discard=1 max_sectors=8" \
		"memory_backed=1 cache_size=1" "memory_backed=1 cache_size=1 fua=0" "blocksize=65536 max_sectors=300"; do
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
}
