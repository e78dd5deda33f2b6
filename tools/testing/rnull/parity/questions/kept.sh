# SPDX-License-Identifier: GPL-2.0
# Prints the questions about data that is kept while the disk changes, or lost with its cache.
# shellcheck shell=bash

kept() {
	local sizes before after

	for sizes in "512 4096" "4096 512" "1024 2048" "65536 512" "512 65536" "65536 4096"; do
		read -r before after <<<"$sizes"
		cat <<-EOF
		case data kept from blocks of $before to blocks of $after
		device a size=2 memory_backed=1 discard=1 blocksize=$before
		write a 0 262144 1 => ok
		put a/power 0 => ok 0
		put a/blocksize $after => ok $after
		put a/power 1 => ok 1
		read a 0 131072
		write a 65536 65536 2 => ok
		read a 65536 65536 => ok 65536*#2
		discard a 131072 65536 => ok
		EOF
	done
	cat <<-EOF
	case data kept while everything else changes
	device a size=4 memory_backed=1
	write a 1048576 65536 1 => ok
	put a/power 0 => ok 0
	put a/irqmode 2
	put a/submit_queues 3
	put a/hw_queue_depth 2
	put a/virt_boundary 1
	put a/discard 1
	put a/cache_size 1
	put a/max_sectors 16
	put a/power 1 => ok 1
	read a 1048576 65536 => ok 65536*#1
	discard a 1048576 4096 => ok
	write a 1056768 4096 2 => ok
	read a 1048576 16384 => ok 4096*zero+4096*#1+4096*#2+4096*#1
	put a/power 0 => ok 0
	put a/power 1 => ok 1
	read a 1048576 16384
	case data kept while requests need not sleep
	device a size=2 memory_backed=1
	get a/blocking => 1
	put a/power 0 => ok 0
	put a/blocking 0 => ok 0
	put a/power 1 => ok 1
	get a/blocking => 1
	case what a cache that overflows loses
	device a size=8 memory_backed=1 cache_size=1
	$(printf 'write a %s 65536 1 => ok\n' {0..2031616..65536})
	put a/power 0 => ok 0
	put a/power 1 => ok 1
	read a 0 2097152
	case what a cache that is full loses
	device a size=8 memory_backed=1 cache_size=1
	write a 4194304 786432 1 => ok
	put a/power 0 => ok 0
	put a/power 1 => ok 1
	read a 4194304 786432 => ok 786432*zero
	EOF
}
