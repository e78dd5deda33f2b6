# SPDX-License-Identifier: GPL-2.0
# Prints the questions about disks that are divided into partitions.
# shellcheck shell=bash

partitions() {
	cat <<-EOF
	case partitions
	device a size=2 memory_backed=1
	partitions a =>
	divide a 8+1024 2048+2048 => ok
	partitions a => a1=8+1024 a2=2048+2048
	write a1 0 65536 1 => ok
	write a2 1048064 512 2 => ok
	write a2 1048576 512 2 => ENOSPC
	read a1 0 131072 => ok 65536*#1+65536*zero
	read a2 983040 65536 => ok 65024*zero+512*#2
	discard a1 0 4096 => EOPNOTSUPP
	flush a1 => ok
	counts a
	hold a1 => ok
	divide a 8+8 => EBUSY
	put a/power 0 => ok 0
	partitions a =>
	put a/power 1 => ok 1
	drop a1
	partitions a
	read a1 0 65536
	put a/power 0 => ok 0
	put a/power 1 => ok 1
	hold a1
	rmdir a => ok
	drop a1
	left
	case partitions of the first disk
	load memory_backed=1 gb=1 nr_devices=1
	divide DISK0 2048+4096 => ok
	partitions DISK0 => DISK0p1=2048+4096
	hold DISK0p1 => ok
	unload-now => EAGAIN
	drop DISK0p1
	unload => ok
	case partitions of large blocks
	device a size=2 memory_backed=1 blocksize=4096 discard=1
	divide a 1+100 128+128 => ok
	partitions a => a1=8+800 a2=1024+1024
	write a1 0 8192 1 => ok
	discard a1 0 4096 => ok
	read a1 0 8192 => ok 4096*zero+4096*#1
	write a1 0 512 1 => EINVAL
	case partitions beyond the end
	device a size=1 memory_backed=1
	divide a 1024+4096 4096+8 => ok
	partitions a
	EOF
}
