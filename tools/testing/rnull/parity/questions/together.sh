# SPDX-License-Identifier: GPL-2.0
# Prints the questions about transfers that are under way at once, polled for or not.
# shellcheck shell=bash

# What is written where polling is the way was written before in another: null_blk, when it is polled, would wait for
# memory where it must not.
together() {
	local mode by

	for mode in 0 1 2; do
		for by in aio ring polled; do
			cat <<-EOF
			case $by together with irqmode $mode
			device a size=2 memory_backed=1 irqmode=$mode submit_queues=2
			write a 0 4096 9 => ok
			write a 8192 4096 9 => ok
			together $by write/a/0/4096/1 write/a/8192/4096/4 read/a/4096/4096 => ok; ok; ok 4096*zero
			read a 0 12288 => ok 4096*#1+4096*zero+4096*#4
			put a/badblocks +140-140
			together $by read/a/71680/512 read/a/0/4096 write/a/65536/8192/3 => EIO 512*untouched; ok 4096*#1; EIO
			put a/badblocks -140-140
			read a 65536 8192 => ok 8192*zero
			case $by together with irqmode $mode without data
			device a size=2 irqmode=$mode
			put a/badblocks +140-140
			together $by read/a/71680/512 write/a/0/4096/1 read/a/8192/4096 => EIO 512*untouched; ok; ok 4096*untouched
			EOF
		done
	done
	cat <<-EOF
	case polled for with bad blocks in part, once
	device a size=2 memory_backed=1 badblocks_once=1 badblocks_partial_io=1
	write a 65536 8192 1 => ok
	put a/badblocks +140-140
	together polled write/a/65536/8192/2 => EIO
	get a/badblocks =>
	read a 65536 8192 => ok 6144*#2+2048*#1
	put a/badblocks +140-140
	together polled read/a/65536/8192 => EIO 6144*#2+2048*untouched
	together polled read/a/65536/8192 => ok 6144*#2+2048*#1
	case polled for where no queue is
	device a size=2 memory_backed=1 poll_queues=0
	together polled read/a/0/4096 write/a/4096/4096/1 => EOPNOTSUPP 4096*untouched; EOPNOTSUPP
	put a/poll_queues 1
	together polled read/a/0/4096 => EOPNOTSUPP 4096*untouched
	read a 0 8192 => ok 8192*zero
	case polled for while queues come and go
	device a size=2 memory_backed=1
	put a/poll_queues 0 => ok 0
	together polled read/a/0/4096 => EOPNOTSUPP 4096*untouched
	put a/poll_queues 1 => ok 1
	put a/submit_queues 3 => ok 3
	write a 4096 4096 9 => ok
	together polled read/a/0/4096 write/a/4096/4096/1 => ok 4096*zero; ok
	read a 4096 4096 => ok 4096*#1
	case polled for with shared tags
	load shared_tags=1 blocking=1 nr_devices=0
	device a size=2 memory_backed=1 poll_queues=0
	device b size=2
	write a 0 4096 9 => ok
	together polled write/a/0/4096/1 read/b/0/4096 write/b/4096/4096/1 => ok; ok 4096*untouched; ok
	read a 0 4096 => ok 4096*#1
	case polled for behind a cache
	device a size=8 memory_backed=1 cache_size=1
	write a 0 65536 9 => ok
	together polled write/a/0/65536/1 read/a/65536/4096 => ok; ok 4096*zero
	read a 0 65536 => ok 65536*#1
	put a/power 0 => ok 0
	put a/power 1 => ok 1
	read a 0 65536 => ok 65536*zero
	case polled for behind a cache without FUA
	device a size=2 memory_backed=1 cache_size=1 fua=0
	write a 0 4096 1 => ok
	flush a => ok
	together polled write/a/0/4096/2/fua => ok
	put a/power 0 => ok 0
	put a/power 1 => ok 1
	read a 0 4096 => ok 4096*#2
	case polled for with limited bandwidth
	device a size=16 mbps=1 max_sectors=16
	lasts 60 8000 together polled$(printf ' read/a/%s/8192' {0..983040..65536}) => ok *in time
	case polled for too late
	device a size=2 memory_backed=1
	write a 0 4096 1 => ok
	sysfs a queue/io_timeout 200 => ok 200
	together late write/a/0/4096/2 read/a/4096/4096
	log timed out => 2
	read a 0 4096
	put a/power 0 => ok 0
	EOF
}
