# SPDX-License-Identifier: GPL-2.0
# Prints the cases of partitions.
# shellcheck shell=bash

cat <<-EOF
case partitions
device a size=2 memory_backed=1
partitions a =>
partition a 8+1024 2048+2048 => ok
partitions a => a1=8+1024 a2=2048+2048
write a1 0 65536 1 => ok
write a2 1048064 512 2 => ok
write a2 1048576 512 2 => ENOSPC
read a1 0 131072 => ok 65536*#1+65536*zero
read a2 983040 65536 => ok 65024*zero+512*#2
discard a1 0 4096 => EOPNOTSUPP
flush a1 => ok
counts a
keep-open a1 => ok
partition a 8+8 => EBUSY
set a/power 0 => ok 0
partitions a =>
set a/power 1 => ok 1
close a1
partitions a
read a1 0 65536
set a/power 0 => ok 0
set a/power 1 => ok 1
keep-open a1
rmdir a => ok
close a1
traces
case partitions of the first disk
load memory_backed=1 gb=1 nr_devices=1
partition DISK0 2048+4096 => ok
partitions DISK0 => DISK0p1=2048+4096
keep-open DISK0p1 => ok
try-unload => EAGAIN
close DISK0p1
unload => ok
case partitions of large blocks
device a size=2 memory_backed=1 blocksize=4096 discard=1
partition a 1+100 128+128 => ok
partitions a => a1=8+800 a2=1024+1024
write a1 0 8192 1 => ok
discard a1 0 4096 => ok
read a1 0 8192 => ok 4096*zero+4096*#1
write a1 0 512 1 => EINVAL
case partitions beyond the end
device a size=1 memory_backed=1
partition a 1024+4096 4096+8 => ok
partitions a
EOF
