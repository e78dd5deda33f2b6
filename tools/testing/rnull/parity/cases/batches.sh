# SPDX-License-Identifier: GPL-2.0
# Prints the cases of several transfers in flight together, polled or not.
# shellcheck shell=bash

# Polled writes overwrite data: for new data null_blk would allocate memory when it is polled, where
# it must not sleep.

for mode in 0 1 2; do
	for engine in threads io_uring polled; do
		batch="batch $engine" bad="EIO 512*untouched; ok"
		cat <<-EOF
		case $engine batch with irqmode $mode
		device a size=2 memory_backed=1 irqmode=$mode submit_queues=2
		write a 0 4096 9 => ok
		write a 8192 4096 9 => ok
		$batch write/a/0/4096/1 write/a/8192/4096/4 read/a/4096/4096 => ok; ok; ok 4096*zero
		read a 0 12288 => ok 4096*#1+4096*zero+4096*#4
		set a/badblocks +140-140
		$batch read/a/71680/512 read/a/0/4096 write/a/65536/8192/3 => $bad 4096*#1; EIO
		set a/badblocks -140-140
		read a 65536 8192 => ok 8192*zero
		case $engine batch with irqmode $mode without data
		device a size=2 irqmode=$mode
		set a/badblocks +140-140
		$batch read/a/71680/512 write/a/0/4096/1 read/a/8192/4096 => $bad; ok 4096*untouched
		EOF
	done
done
cat <<-EOF
case polling with bad blocks once, partial
device a size=2 memory_backed=1 badblocks_once=1 badblocks_partial_io=1
write a 65536 8192 1 => ok
set a/badblocks +140-140
batch polled write/a/65536/8192/2 => EIO
get a/badblocks =>
read a 65536 8192 => ok 6144*#2+2048*#1
set a/badblocks +140-140
batch polled read/a/65536/8192 => EIO 6144*#2+2048*untouched
batch polled read/a/65536/8192 => ok 6144*#2+2048*#1
case polling without poll queues
device a size=2 memory_backed=1 poll_queues=0
batch polled read/a/0/4096 write/a/4096/4096/1 => EOPNOTSUPP 4096*untouched; EOPNOTSUPP
set a/poll_queues 1
batch polled read/a/0/4096 => EOPNOTSUPP 4096*untouched
read a 0 8192 => ok 8192*zero
case polling while the number of queues changes
device a size=2 memory_backed=1
set a/poll_queues 0 => ok 0
batch polled read/a/0/4096 => EOPNOTSUPP 4096*untouched
set a/poll_queues 1 => ok 1
set a/submit_queues 3 => ok 3
write a 4096 4096 9 => ok
batch polled read/a/0/4096 write/a/4096/4096/1 => ok 4096*zero; ok
read a 4096 4096 => ok 4096*#1
case polling with shared tags
load shared_tags=1 blocking=1 nr_devices=0
device a size=2 memory_backed=1 poll_queues=0
device b size=2
write a 0 4096 9 => ok
batch polled write/a/0/4096/1 read/b/0/4096 write/b/4096/4096/1 => ok; ok 4096*untouched; ok
read a 0 4096 => ok 4096*#1
case polling with a cache
device a size=8 memory_backed=1 cache_size=1
write a 0 65536 9 => ok
batch polled write/a/0/65536/1 read/a/65536/4096 => ok; ok 4096*zero
read a 0 65536 => ok 65536*#1
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 65536 => ok 65536*zero
case polling with a cache without FUA
device a size=2 memory_backed=1 cache_size=1 fua=0
write a 0 4096 1 => ok
flush a => ok
batch polled write/a/0/4096/2/fua => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 4096 => ok 4096*#2
case polling with limited bandwidth
device a size=16 mbps=1 max_sectors=16
timed 60 8000 batch polled$(printf ' read/a/%s/8192' {0..983040..65536}) => ok *in time
case polling after the timeout
device a size=2 memory_backed=1
write a 0 4096 1 => ok
sysfs a queue/io_timeout 200 => ok 200
batch late write/a/0/4096/2 read/a/4096/4096
log timed out => 2
read a 0 4096
set a/power 0 => ok 0
EOF
