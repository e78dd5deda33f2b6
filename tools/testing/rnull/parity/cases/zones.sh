# SPDX-License-Identifier: GPL-2.0
# Prints the cases of zoned disks: what they are made of, what becomes of each zone in each
# condition, limits, data. `loading` is that of parameters.sh.
# shellcheck shell=bash

mib=1048576

# zone NUMBER [LENGTH]: the beginning of a zone of 1 MiB, with its length.
zone() {
	echo "$(($1 * mib)) ${2:-$mib}"
}

# Attributes that change a zone: texts for a disk that is off, is not zoned, is zoned.
for attribute in zone_readonly zone_offline; do
	cat <<-EOF
	case attribute $attribute
	mkdir a => ok
	mode a/$attribute => 200
	open a/$attribute r => EACCES
	open a/$attribute rw => EACCES
	open a/$attribute w => ok
	set a/$attribute 0 => EINVAL *
	set a/zoned 1 => ok 1
	set a/$attribute 0 => EINVAL *
	set a/zoned 0 => ok 0
	set a/size 7 => ok 7
	set a/zone_size 2 => ok 2
	set a/zone_nr_conv 1 => ok 1
	set a/power 1 => ok 1
	set a/$attribute 4096 => EINVAL *
	set a/power 0 => ok 0
	set a/zoned 1 => ok 1
	set a/power 1 => ok 1
	EOF
	for text in 0 4095 4096 0x1000 010000 +4097 8191 '8192\n' 12288 14335 14336 16383 16384 -1 \
		'\s4096' '4096\s' '\e' '\n' abc 18446744073709551615 18446744073709551616; do
		echo "set a/$attribute $text"
		echo "report-zones a 0 9"
	done
	cat <<-EOF
	case $attribute of a zone whose number has more than 32 bits
	device a zoned=1 size=4 zone_size=1
	set a/$attribute 8796093022208
	report-zones a 0 9
	EOF
done

# zoned ATTRIBUTE=VALUE...: a power-on with these settings, and all that there is to see.
zoned() {
	local setting

	echo "case zones with $*"
	echo "mkdir a"
	for setting in zoned=1 "$@" power=1; do
		echo "set a/${setting%%=*} ${setting#*=}"
	done
	cat <<-EOF
	attributes a
	disk a
	report-zones a 0 64 => *
	report-cached a 0 64 => *
	set a/zone_size 3
	set a/power 0
	set a/zone_size 3 => ok 3
	EOF
}

zoned size=16 zone_size=4
for value in 0 1 3 16 32 17592186044416 18446744073709551615; do
	zoned size=16 "zone_size=$value"
done
for value in 1 4 5; do
	zoned size=16 zone_size=4 "zone_capacity=$value" zone_nr_conv=1
	zoned size=18 zone_size=4 "zone_capacity=$value"
done
for value in 3 4 4294967295; do
	zoned size=16 zone_size=4 "zone_nr_conv=$value"
	zoned size=16 zone_size=4 "zone_max_open=$value"
	zoned size=16 zone_size=4 "zone_max_active=$value" zone_nr_conv=1
	zoned size=16 zone_size=4 zone_max_active=2 "zone_max_open=$value"
done
for value in 0 7 8 100 8192 4294967295; do
	zoned size=16 zone_size=4 "zone_append_max_sectors=$value" blocksize=4096
done
zoned size=16 zone_size=4 zone_append_max_sectors=4096 max_sectors=64 zone_capacity=1
zoned size=16 zone_size=4 zone_append_max_sectors=100 blocksize=0
zoned size=16 zone_size=4 zone_append_max_sectors=100 blocksize=65536
zoned size=1 zone_size=1 zone_nr_conv=1 zone_max_open=1 zone_max_active=1
zoned size=0 zone_size=1
zoned size=300 zone_size=2
zoned size=16 zone_size=4 zone_full=1 zone_capacity=3 zone_nr_conv=1
zoned size=16 zone_size=4 discard=1 memory_backed=1 cache_size=1
zoned size=16 zone_size=4 virt_boundary=1 rotational=1 poll_queues=0
zoned size=16 zone_size=4 shared_tags=1
zoned size=4194304 zone_size=1048576
# Which error is reported, and what null_blk has changed by then.
zoned size=16 zone_size=3 hw_queue_depth=0 irqmode=7
zoned size=16 zone_size=4 blocksize=1000 zone_nr_conv=9 zone_max_open=9
zoned size=16 zone_size=32 discard=1 memory_backed=1

# Parameters.
for value in zoned zoned=2 "zoned gb=1" "zoned gb=1 zone_size=3" "zone_size=0 zoned" zone_size=-1 \
	zone_size=abc zone_capacity=-1 zone_capacity= zone_nr_conv=4294967296 zone_nr_conv=-1 \
	zone_max_open=x zone_max_active=0x10 zone_append_max_sectors=2147483648 \
	zone_append_max_sectors=-1 zone_full zone_full=abc; do
	loading "$value"
done
more="zone_max_active=3 zone_full zone_append_max_sectors=17"
cat <<-EOF
case parameters are the defaults of zones
load gb=1 zoned zone_size=64 zone_capacity=32 zone_nr_conv=2 zone_max_open=5 $more
parameters
disk DISK0
report-zones DISK0 0 64
mkdir a => ok
attributes a
set a/power 1 => ok 1
attributes a
disk a
EOF

# Requests for zones that do not fit.
cat <<-EOF
case a disk without zones
device a size=8
report-zones a 0 1 => ENOTTY
report-cached a 0 1 => ENOTTY
open-zones a 0 $mib => ENOTTY
reset-zones a 0 $mib => ENOTTY
case ranges of zones
device a zoned=1 size=7 zone_size=2 zone_nr_conv=1
report-zones a 0 0 => EINVAL
report-zones a $((7 * mib)) 1 => ok
report-zones a $((9 * mib)) 1 => ok
report-zones a $((3 * mib)) 1 => ok 2097152+2097152/2097152@2097152:empty
report-zones a $((6 * mib)) 9 => ok 6291456+1048576/1048576@6291456:empty
EOF
for verb in open close finish reset; do
	cat <<-EOF
	$verb-zones a 0 0 => EINVAL
	$verb-zones a $mib $((2 * mib)) => EINVAL
	$verb-zones a $((2 * mib)) $mib => EINVAL
	$verb-zones a $((2 * mib)) $((6 * mib)) => EINVAL
	$verb-zones a $((8 * mib)) $((2 * mib)) => EINVAL
	$verb-zones a 0 $((2 * mib)) => EIO
	$verb-zones a 0 $((4 * mib)) => EIO
	report-zones a 0 9
	$verb-zones a $((6 * mib)) $mib
	$verb-zones a $((2 * mib)) $((5 * mib))
	report-zones a 0 9
	EOF
done
cat <<-EOF
reset-zones a 0 $((7 * mib)) => ok
report-zones a 0 9 => ok 0*conventional 2097152*empty 4194304*empty 6291456*empty
write a $((2 * mib)) 4096 1 => ok
report-cached a 0 9
partitions a =>
case changes of zones, some of which fail
device a zoned=1 size=4 zone_size=1
write a 0 4096 1 => ok
write a $mib 4096 1 => ok
set a/zone_readonly 2048 => ok *
write a $((2 * mib)) 4096 1 => ok
# The block layer does not learn of the zones behind one that has failed.
reset-zones a 0 $((3 * mib)) => EIO
write a 0 4096 2 => ok
write a $((2 * mib)) 4096 2 => EIO
report-zones a 0 9
write a $((2 * mib)) 4096 2 => ok
close-zones a 0 $((4 * mib)) => EIO
report-zones a 0 9
EOF

# Every operation on zones in every condition, with and without limits.
for limits in "" "zone_max_open=9 zone_max_active=9" "memory_backed=1"; do
	for verb in open-zones close-zones finish-zones reset-zones zone_readonly zone_offline \
		write at-pointer beyond read; do
		cat <<-EOF
		case ${limits:-no limits}: $verb, of zones in every condition
		device a zoned=1 size=24 zone_size=2 zone_capacity=1 zone_nr_conv=1 $limits
		open-zones a $(zone 6) => EINVAL
		write a $((4 * mib)) 65536 1 => ok
		open-zones a $(zone 6 $((2 * mib))) => ok
		open-zones a $(zone 8 $((2 * mib))) => ok
		write a $((8 * mib)) 65536 1 => ok
		write a $((10 * mib)) 65536 1 => ok
		close-zones a $(zone 10 $((2 * mib))) => ok
		write a $((12 * mib)) $mib 1 => ok
		write a $((14 * mib)) 65536 1 => ok
		finish-zones a $(zone 14 $((2 * mib))) => ok
		write a $((16 * mib)) 65536 1 => ok
		set a/zone_readonly $((16 * 2048)) => ok *
		set a/zone_offline $((18 * 2048)) => ok *
		report-zones a 0 64
		EOF
		for ((zone = 0; zone < 20; zone += 2)); do
			case $verb in
			*-zones) echo "$verb a $(zone $zone $((2 * mib)))" ;;
			zone_*) echo "set a/$verb $((zone * 2048))" ;;
			write) echo "write a $((zone * mib)) 4096 2" ;;
			at-pointer) echo "write a $((zone * mib + 65536)) 4096 2" ;;
			beyond) echo "write a $((zone * mib + 65536)) $mib 2" ;;
			read) echo "read a $((zone * mib)) 131072" ;;
			esac
		done
		cat <<-EOF
		report-zones a 0 64
		reset-zones a 0 $((24 * mib)) => ok
		report-zones a 0 64
		EOF
	done
done

# Limits.
for memory in 0 1; do
	cat <<-EOF
	case as many open zones as may be, memory_backed=$memory
	device a zoned=1 size=8 zone_size=1 zone_max_open=2 zone_nr_conv=1 memory_backed=$memory
	write a $mib 4096 1 => ok
	open-zones a $(zone 2) => ok
	# The zone that a write has opened is closed for another, one after the other.
	write a $((3 * mib)) 4096 1 => ok
	report-zones a 0 64
	write a $((4 * mib)) 4096 1 => ok
	write a $((5 * mib)) 4096 1 => ok
	report-zones a 0 64
	open-zones a $(zone 6) => ok
	report-zones a 0 64
	# None may be closed.
	write a $((7 * mib)) 4096 1 => ETOOMANYREFS
	report-zones a 0 64
	write a $((mib + 4096)) 4096 1 => ETOOMANYREFS
	open-zones a $(zone 7) => ETOOMANYREFS
	open-zones a $(zone 1) => ETOOMANYREFS
	finish-zones a $(zone 7) => ETOOMANYREFS
	finish-zones a $(zone 1) => ETOOMANYREFS
	report-zones a 0 64
	# A write of several requests whose first fails.
	write a $((7 * mib)) 524288 1 => EIO
	report-zones a 0 64
	finish-zones a $(zone 6) => ok
	write a $((7 * mib)) 4096 1 => ok
	close-zones a $(zone 2) => ok
	report-zones a 0 64
	case zones that are open are closed in turn, memory_backed=$memory
	device a zoned=1 size=6 zone_size=1 zone_max_open=2 memory_backed=$memory
	EOF
	for write in 3:0 1:0 5:0 0:0 3:4096 2:0 1:4096 5:4096 4:0 0:4096 3:8192; do
		cat <<-EOF
		write a $((${write%:*} * mib + ${write#*:})) 4096 1 => ok
		report-zones a 0 64
		EOF
	done
	cat <<-EOF
	case as many active zones as may be, memory_backed=$memory
	device a zoned=1 size=8 zone_size=1 zone_max_active=3 zone_max_open=2 memory_backed=$memory
	write a 0 4096 1 => ok
	write a $mib 4096 1 => ok
	write a $((2 * mib)) 4096 1 => ok
	report-zones a 0 64
	write a $((3 * mib)) 4096 1 => EOVERFLOW
	report-zones a 0 64
	open-zones a $(zone 3) => EOVERFLOW
	finish-zones a $(zone 3) => EOVERFLOW
	# Nothing is closed for a zone that is active already.
	write a 4096 4096 1 => ETOOMANYREFS
	report-zones a 0 64
	open-zones a $(zone 0) => ETOOMANYREFS
	finish-zones a $(zone 0) => ETOOMANYREFS
	close-zones a $(zone 1) => ok
	write a 4096 4096 1 => ok
	report-zones a 0 64
	reset-zones a $(zone 1) => ok
	finish-zones a $(zone 3) => ok
	write a $((4 * mib)) 4096 1 => ok
	report-zones a 0 64
	write a $((5 * mib)) 4096 1 => EOVERFLOW
	reset-zones a 0 $((8 * mib)) => ok
	write a $((5 * mib)) 4096 1 => ok
	report-zones a 0 64
	case only the number of active zones is limited, memory_backed=$memory
	device a zoned=1 size=4 zone_size=1 zone_max_active=1 memory_backed=$memory
	open-zones a $(zone 2) => ok
	write a 0 4096 1 => EOVERFLOW
	close-zones a $(zone 2) => ok
	report-zones a 0 64
	write a 0 4096 1 => ok
	finish-zones a $(zone 0) => ok
	finish-zones a $(zone 1) => ok
	write a $((2 * mib)) $mib 1 => ok
	write a $((3 * mib)) 4096 1 => ok
	report-zones a 0 64
	case a zone that fails makes a place, memory_backed=$memory
	device a zoned=1 size=5 zone_size=1 zone_max_active=2 zone_max_open=1 memory_backed=$memory
	open-zones a $(zone 0) => ok
	set a/zone_offline 0 => ok *
	open-zones a $(zone 1) => ok
	set a/zone_readonly 2048 => ok *
	set a/zone_readonly 2048 => ok *
	write a $((2 * mib)) 4096 1 => ok
	report-zones a 0 64
	case an empty zone fails while another is open, memory_backed=$memory
	device a zoned=1 size=5 zone_size=1 zone_max_active=3 zone_max_open=1 memory_backed=$memory
	write a 0 4096 1 => ok
	set a/zone_offline 2048 => ok *
	report-zones a 0 64
	case a closed zone fails while none may be opened, memory_backed=$memory
	device a zoned=1 size=5 zone_size=1 zone_max_active=2 zone_max_open=1 memory_backed=$memory
	write a 0 4096 1 => ok
	close-zones a $(zone 0) => ok
	open-zones a $(zone 1) => ok
	set a/zone_readonly 0 => ok *
	write a $mib 4096 1 => ok
	close-zones a $(zone 1) => ok
	write a $((2 * mib)) 4096 1
	report-zones a 0 64
	case open zones from before a power cycle, memory_backed=$memory
	device a zoned=1 size=5 zone_size=1 zone_max_active=2 memory_backed=$memory
	open-zones a $(zone 0) => ok
	write a $mib 4096 1 => ok
	set a/power 0 => ok 0
	set a/power 1 => ok 1
	open-zones a $(zone 2)
	write a $mib 4096 1
	EOF
done

# Writes that fail, as the block layer sees them.
cat <<-EOF
case a zone whose write pointer is lost
device a zoned=1 size=4 zone_size=1 zone_nr_conv=1
write a $((2 * mib + 4096)) 4096 1 => EIO
write a $((2 * mib)) 4096 1 => EIO
# Which tells the block layer, too.
report-cached a 0 9
write a $((2 * mib)) 4096 1 => ok
write a $((2 * mib)) 4096 1 => EIO
report-zones a $((3 * mib)) 1
write a $((2 * mib + 4096)) 4096 1 => EIO
report-zones a $((2 * mib)) 1
write a $((2 * mib + 4096)) 4096 1 => ok
finish-zones a $(zone 2) => ok
write a $((2 * mib + 8192)) 4096 1 => EIO
reset-zones a $(zone 2) => ok
write a $((2 * mib)) 4096 1 => ok
# Not through the block layer.
set a/zone_offline 4096 => ok *
set a/zone_offline 4096 => ok *
write a $((2 * mib)) 4096 1 => EIO
report-zones a 0 9
write a $((2 * mib)) 4096 1 => ok
write a $((mib - 4096)) 8192 1 => ok
report-zones a 0 9
zero a 0 8192 => ok
zero a $((3 * mib)) 8192 => ok
zero a $((3 * mib)) 8192 => EIO
discard a 0 $mib => EOPNOTSUPP
secure-erase a 0 $mib => EOPNOTSUPP
counts a
report-cached a 0 9
# The block layer takes no note that it has refused a write that it had delayed, and so a report
# does not tell it where the write pointer is.
case the first write to a zone is behind the capacity, and delayed
device a zoned=1 size=8 zone_size=2 zone_capacity=1
batch io_uring write/a/$((3 * mib))/4096/1 => EIO
report-zones a 0 9
report-cached a 0 9 => ok *@3145728:empty*
write a $((2 * mib)) 4096 1 => EIO
# The last one was not delayed.
report-zones a 0 9
write a $((2 * mib)) 4096 1 => ok
batch io_uring write/a/$((5 * mib))/4096/1 => EIO
reset-zones a $((4 * mib)) $((2 * mib)) => ok
write a $((4 * mib)) 4096 1 => ok
case the first write to a zone of a rotational disk is behind the capacity
device a zoned=1 size=8 zone_size=2 zone_capacity=1 rotational=1
write a $((3 * mib)) 4096 1 => EIO
report-zones a 0 9
write a $((2 * mib)) 4096 1 => EIO
report-zones a 0 9
write a $((2 * mib)) 4096 1 => EIO
reset-zones a $((2 * mib)) $((2 * mib)) => ok
write a $((2 * mib)) 4096 1 => ok
case requests of a zoned disk
device a zoned=1 size=8 zone_size=2 zone_capacity=1 zone_nr_conv=1 memory_backed=1
counts a
write a 0 $mib 1 => ok
write a $((2 * mib)) 524288 1 => ok
counts a
read a $((2 * mib - 65536)) 196608 => ok *
counts a
reset-zones a $((2 * mib)) $((6 * mib)) => ok
finish-zones a $((2 * mib)) $((2 * mib)) => ok
counts a
EOF

# Data.
for bs in 512 4096 65536; do
	cat <<-EOF
	case data of zones in blocks of $bs
	device a zoned=1 size=8 zone_size=2 zone_capacity=1 zone_nr_conv=1 memory_backed=1 blocksize=$bs
	read a $((2 * mib - 65536)) 131072 => ok 65536*zero+65536*ff
	write a $((2 * mib)) 131072 1 => ok
	write a $((2 * mib + 131072)) $bs 2 => ok
	read a $((2 * mib)) 262144
	write a 65536 65536 3 => ok
	read a 0 196608 => ok 65536*zero+65536*#3+65536*zero
	write a $((2 * mib + 512)) 100 3 => EINVAL
	finish-zones a $((2 * mib)) $((2 * mib)) => ok
	read a $((2 * mib + 131072)) 131072
	read a $((3 * mib - 65536)) 131072 => ok 131072*zero
	write a $((4 * mib)) $mib 4 => ok
	read a $((5 * mib - 65536)) 131072 => ok 65536*#4+65536*ff
	reset-zones a $((4 * mib)) $((2 * mib)) => ok
	read a $((4 * mib)) 131072 => ok 131072*ff
	write a $((4 * mib)) $bs 5 => ok
	finish-zones a $((4 * mib)) $((2 * mib)) => ok
	read a $((4 * mib)) 131072
	set a/zone_readonly 4096 => ok *
	read a $((2 * mib)) 131072 => ok 131072*#1
	set a/zone_readonly 4096 => ok *
	report-zones a 0 64
	read a $((2 * mib)) 131072 => ok 131072*ff
	# The block layer has forgotten the zone when it was full.
	write a $((2 * mib)) 65536 6 => ok
	set a/zone_offline 4096 => ok *
	read a $((2 * mib)) 65536 => EIO *
	read a $((2 * mib - 65536)) 131072 => EIO *
	set a/zone_readonly 4096 => ok *
	read a $((2 * mib)) 65536 => ok 65536*#6
	case bad blocks of zones in blocks of $bs
	device a zoned=1 size=4 zone_size=1 memory_backed=1 blocksize=$bs zone_nr_conv=1
	set a/badblocks +2305-2306
	set a/badblocks +257-257
	write a $mib 262144 1 => EIO
	report-zones a 0 9
	read a $mib 65536
	write a 0 262144 1 => EIO
	read a 0 65536
	read a 131072 65536 => EIO *
	case bad blocks of zones, partial, in blocks of $bs
	device a zoned=1 size=4 zone_size=1 memory_backed=1 blocksize=$bs badblocks_partial_io=1
	set a/badblocks +2305-2306
	write a $mib 65536 1 => ok
	write a $((mib + 65536)) 131072 1 => EIO
	report-zones a $mib 1
	read a $mib 262144 => EIO *
	set a/badblocks -0-9999
	write a $((mib + 131072)) 65536 2
	report-zones a $mib 1
	read a $mib 262144
	# The whole zone as the block layer sees it, a part of it in fact.
	set a/badblocks +4352-4352
	write a $((2 * mib)) $mib 1 => EIO
	report-zones a $((2 * mib)) 1
	EOF
done
for settings in "" "cache_size=1" "cache_size=1 fua=0" "irqmode=2 submit_queues=3" "irqmode=0" \
	"rotational=1" "poll_queues=0" "badblocks_once=1"; do
	cat <<-EOF
	case zones over power cycles with ${settings:-no settings}
	device a zoned=1 size=6 zone_size=1 memory_backed=1 $settings
	write a 0 $mib 1 => ok
	write a $mib 524288 1 => ok
	write a $((mib + 524288)) 65536 2 fua => ok
	set a/badblocks +$((4 * 2048 + 100))-$((4 * 2048 + 100))
	write a $((4 * mib)) 65536 2 => EIO
	report-zones a 0 9
	write a $((4 * mib)) 49152 2 => ok
	write a $((4 * mib + 49152)) 16384 2
	flush a => ok
	report-zones a 0 9
	set a/badblocks -0-99999
	batch threads write/a/$((5 * mib))/65536/3 read/a/0/65536 read/a/$((2 * mib))/65536
	flush a => ok
	report-zones a 0 9
	set a/power 0 => ok 0
	report-zones a 0 9 => ENOENT*
	set a/zone_full 1 => ok 1
	set a/power 1 => ok 1
	report-zones a 0 9
	read a $mib 589824 => ok 524288*#1+65536*#2
	set a/power 0 => ok 0
	set a/zone_full 0 => ok 0
	set a/power 1 => ok 1
	report-zones a 0 9
	read a $mib 65536 => ok 65536*ff
	write a $mib 65536 4 => ok
	set a/zone_readonly 2048 => ok *
	read a $mib 589824 => ok 65536*#4+458752*#1+65536*#2
	flush a => ok
	set a/power 0 => ok 0
	set a/zoned 0 => ok 0
	set a/power 1 => ok 1
	report-zones a 0 1 => ENOTTY
	read a $((5 * mib)) 65536 => ok 65536*#3
	EOF
done
cat <<-EOF
case polling a zoned disk
device a zoned=1 size=4 zone_size=1 memory_backed=1
batch polled read/a/0/4096 => ok 4096*ff
set a/zone_offline 0 => ok *
batch polled read/a/0/4096
case zoned disks that share their tags
load shared_tags=1 blocking=1 nr_devices=0
device a zoned=1 size=4 zone_size=1 memory_backed=1 zone_max_open=1
device b size=2 memory_backed=1
write a 0 4096 1 => ok
write b 4096 4096 1 => ok
write a $mib 4096 1 => ok
report-zones a 0 9
report-zones b 0 9 => ENOTTY
case zoned disks without data that share their tags
load shared_tags=1 nr_devices=0
device a zoned=1 size=4 zone_size=1 zone_nr_conv=1
write a 0 4096 1 => ok
write a $mib 4096 1 => ok
read a $mib 4096
open-zones a $((2 * mib)) $mib => ok
reset-zones a $mib $mib => ok
report-zones a 0 9
EOF
