# SPDX-License-Identifier: GPL-2.0
# Prints the cases of the module parameters.
# shellcheck shell=bash

# loading PARAMETER=VALUE...: loads and unloads the driver with these parameters.
loading() {
	cat <<-EOF
	case load $*
	load $*
	parameters
	disks
	disk DISK0
	unload => *
	traces =>
	EOF
}

loading
for value in 0 1 2 '' abc -1 0x2 010 1,2 '\s' '"\s1"' 4294967296 99999999999999999999; do
	loading "gb=$value"
	loading "nr_devices=0 completion_nsec=$value"
	loading "nr_devices=0 hw_queue_depth=$value"
	loading "nr_devices=0 cache_size=$value"
	loading "nr_devices=0 mbps=$value"
	loading "nr_devices=0 poll_queues=$value"
done
for value in 0 1 3 -1 abc '' 4294967296; do
	loading "nr_devices=$value"
done
for value in 0 1 256 512 1000 1024 4096 8192 65536 -1; do
	loading "bs=$value"
done
for value in 0 1 2 3 -1 0x1 '"1\s"' '' abc 4294967296; do
	loading "irqmode=$value"
	loading "queue_mode=$value"
done
for value in -4 0 1 2 99 abc; do
	loading "submit_queues=$value"
done
for value in 0 1 2 4 9 -1; do
	loading "poll_queues=$value"
	# With -1 poll queues and others null_blk dereferences a NULL pointer.
	[ "$value" = -1 ] || loading "poll_queues=$value submit_queues=3"
done
for value in -1 0 1 5 -2 abc; do
	loading "home_node=$value"
done
for value in 1 10240 20000 -1; do
	loading "hw_queue_depth=$value"
done
for value in 8 64 -1 abc; do
	loading "max_sectors=$value"
done
for name in blocking memory_backed rotational virt_boundary use_per_node_hctx discard fua \
	shared_tags shared_tag_bitmap; do
	for value in "$name" "$name=1" "$name=n" "$name=2" "$name=" "$name=on"; do
		loading "$value"
	done
done
for value in no_sched=1 no_sched=-1 no_sched=y no_sched; do
	loading "$value"
	loading "$value poll_queues=0"
done
for value in 2097151 2097152 2147483647 2147483648 -2147483648 -2147483649 0X1F +1; do
	loading "gb=$value"
done
loading use_per_node_hctx=1 submit_queues=2
loading gb=1 gb=2
loading unknown=1
loading memory_backed=1 bs=4096 irqmode=2 completion_nsec=1 submit_queues=2 hw_queue_depth=8 \
	nr_devices=2
loading memory_backed=1 discard=1
loading memory_backed=1 discard=1 bs=4096
loading memory_backed=1 cache_size=1
loading memory_backed=1 cache_size=1 fua=0
loading memory_backed=1 cache_size=18446744073709551615
loading cache_size=5
loading mbps=50000
loading shared_tags=1 nr_devices=3 submit_queues=2
loading shared_tags=1 nr_devices=3 hw_queue_depth=3 shared_tag_bitmap=1 poll_queues=2
loading shared_tags=1 blocking=1 no_sched=1
more="no_sched=1 max_sectors=64" limits="max_sectors=99 mbps=123456"
cat <<-EOF
case types of parameters
types
case parameters are the defaults of new devices
load gb=3 bs=4096 memory_backed=1 irqmode=2 completion_nsec=7 submit_queues=2 hw_queue_depth=9 $more
mkdir a => ok
attributes a
set a/power 1 => ok 1
attributes a
disk a
case all flags are the defaults of new devices
load nr_devices=0 blocking shared_tags use_per_node_hctx fua=0 no_sched=1 home_node=0
mkdir a => ok
attributes a
case all other flags are the defaults of new devices
load nr_devices=0 virt_boundary rotational discard shared_tag_bitmap queue_mode=0 bs=2048 $limits
mkdir a => ok
attributes a
case limits are the defaults of new devices
load memory_backed=1 cache_size=3 mbps=77 discard=1 fua=0
mkdir a => ok
attributes a
case parameters of queues are the defaults of new devices
load nr_devices=0 submit_queues=3 poll_queues=2 shared_tag_bitmap=1
mkdir a => ok
attributes a
set a/poll_queues 3
set a/power 1 => ok 1
attributes a
disk a
set a/poll_queues 3 => EINVAL 2
set a/poll_queues 1 => ok 1
disk a
EOF
