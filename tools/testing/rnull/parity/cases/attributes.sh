# SPDX-License-Identifier: GPL-2.0
# Prints the cases of each attribute: texts, then power-on with values.
# shellcheck shell=bash

# All attributes but those that change a zone, in the order of null_blk's table.
attributes=(badblocks badblocks_once badblocks_partial_io blocking blocksize cache_size
	completion_nsec discard fua home_node hw_queue_depth index irqmode max_sectors mbps
	memory_backed no_sched poll_queues power queue_mode rotational shared_tag_bitmap shared_tags
	size submit_queues use_per_node_hctx virt_boundary zone_append_max_sectors zone_capacity
	zone_full zone_max_active zone_max_open zone_nr_conv zone_size zoned)
texts=(0 1 7 010 0x10 0X1f 08 +5 +-5 -1 -0 '\s5' '5\s' '5\n' '5\n\n' '\n' abc 5x 0x 1e3
	4294967295 4294967296 18446744073709551615 18446744073709551616 99999999999999999999999 y Y
	n N t f T F yes Nope on off ON oN of o 2 '\t1' '1\t' '\e')

# Every text to every attribute of a device that is off, then of one that is on.
off=n

for attribute in "${attributes[@]}"; do
	echo "case attribute $attribute"
	cat <<-EOF
	mkdir a => ok
	mode a/$attribute => 644
	get a/$attribute
	open a/$attribute r => ok
	open a/$attribute w => ok
	open a/$attribute rw => ok
	EOF
	for text in "${texts[@]}"; do
		# Texts that power on have a case of their own.
		[[ $attribute$text =~ ^power([1yYtT]|[oO][nN]) ]] || echo "set a/$attribute $text"
	done
	case $attribute in
	power) ;;
	*_queues | badblocks)
		printf '%s\n' "set a/size 16" "set a/$attribute 1" "set a/power 1 => ok 1"
		printf "set a/$attribute %s\n" "${texts[@]}"
		;;
	*)
		printf '%s\n' "set a/size 16" "set a/blocksize 512" "set a/hw_queue_depth 64" \
			"set a/queue_mode 2" "set a/max_sectors 0" "set a/home_node 0" "set a/zone_size 1" \
			"set a/power 1 => ok 1" "get a/$attribute" "set a/$attribute 1 => EBUSY *" \
			"set a/$attribute abc => EINVAL *" "set a/$attribute \\e => EFAULT *"
		printf "set a/$attribute %s\n" "${texts[@]}"
		printf '%s\n' "set a/power 0 => ok 0" "set a/$attribute 1 => ok *"
		;;
	esac
done

# Texts that switch the power.
printf '%s\n' "case power: texts" "device a size=1"
for text in 2 '\s1' '\t1' o '\n' abc '\e' -1; do
	echo "set a/power $text => E* 1"
done
for text in y T on oN 1x '1\n'; do
	printf '%s\n' "set a/power $off => ok 0" "set a/power $text => ok 1"
	case $off in
	n) off=Nope ;;
	Nope) off=F ;;
	F) off=oF ;;
	*) off='0\n' ;;
	esac
done

# settings ATTRIBUTE=VALUE...: a power-on with these settings, and a power-off.
settings() {
	local setting

	echo "case power on with $*"
	echo "mkdir a"
	for setting in "$@" power=1; do
		echo "set a/${setting%%=*} ${setting#*=}"
	done
	cat <<-EOF
	attributes a
	disk a
	disks
	set a/power 0
	attributes a
	set a/size 9 => ok 9
	set a/blocksize 512 => ok 512
	rmdir a => ok
	traces => major subsystem module
	EOF
}

for value in 0 256 511 512 513 1000 1024 2048 4096 8192 16384 32768 65536 131072 4294967295; do
	settings size=16 "blocksize=$value"
done
# 1 to 7 make null_blk warn.
for value in 0 8 9 64 255 256 2048 65535 4294967295; do
	settings size=16 "max_sectors=$value"
done
for value in 0 1 2 64 1024 10240 10241 20000 4294967295; do
	settings size=16 "hw_queue_depth=$value"
done
for value in 0 1 2 3 7 4294967295; do
	settings size=16 "queue_mode=$value"
	settings size=16 "irqmode=$value"
done
for value in 0 1 2 4 5 99 4294967295; do
	settings size=16 "submit_queues=$value"
	settings size=16 "poll_queues=$value"
	settings size=16 "poll_queues=0" "submit_queues=$value"
	settings size=16 "mbps=$value"
	settings size=16 memory_backed=1 "cache_size=$value"
	settings size=16 "cache_size=$value"
done
for value in 40959 40960 40961; do
	settings size=16 "mbps=$value"
done
settings size=16 memory_backed=1 cache_size=17592186044416
for attribute in badblocks_once badblocks_partial_io blocking discard fua memory_backed no_sched \
	rotational shared_tag_bitmap shared_tags use_per_node_hctx virt_boundary; do
	settings size=16 "$attribute=1"
	settings size=16 memory_backed=1 "$attribute=1"
	settings size=16 memory_backed=1 "$attribute=0"
done
settings size=16 memory_backed=1 cache_size=1 fua=0
settings size=16 memory_backed=1 cache_size=1 fua=1
settings size=16 fua=0
settings size=16 memory_backed=1 discard=1 blocksize=4096
settings size=16 memory_backed=1 discard=1 blocksize=65536
settings size=16 memory_backed=1 discard=1 cache_size=1 virt_boundary=1 max_sectors=64 \
	rotational=1 mbps=100
settings size=16 use_per_node_hctx=1 submit_queues=3
settings size=16 home_node=0
settings size=16 index=7 completion_nsec=0 irqmode=2
# As many bytes as 63 bits count, as 64 bits count, more.
for value in 8796093022207 8796093022208 17592186044415 17592186044416 17592186044417 \
	18446744073709551615; do
	settings "size=$value"
done
settings size=0
settings size=0 memory_backed=1
settings size=1 memory_backed=1 blocksize=65536 submit_queues=4 irqmode=2 hw_queue_depth=3
settings size=16 no_sched=1 submit_queues=2 virt_boundary=1 max_sectors=64 rotational=1
settings size=16 no_sched=1 poll_queues=0
settings size=16 shared_tag_bitmap=1 submit_queues=3 hw_queue_depth=5
# An error, with other settings that would be adjusted.
settings blocksize=1000 irqmode=7 submit_queues=99 poll_queues=7 memory_backed=1
settings blocksize=1000 cache_size=5 mbps=99999
settings blocksize=1000 discard=1
settings hw_queue_depth=0 discard=1
settings queue_mode=1 irqmode=7 submit_queues=99
settings blocksize=1000 index=5
