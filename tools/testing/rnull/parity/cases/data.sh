# SPDX-License-Identifier: GPL-2.0
# Prints the cases of data: written, read, discarded, in a cache, kept over a power cycle.
# shellcheck shell=bash

each_block_size <<-EOF
case data in blocks of BS
device a size=2 memory_backed=1 blocksize=BS
read a 0 65536 => ok 65536*zero
write a 65536 65536 1 => ok
read a 0 262144 => ok 65536*zero+65536*#1+131072*zero
write a 131072 BS 2 => ok
read a 65536 131072
write a 2031616 65536 3 => ok
read a 1966080 131072 => ok 65536*zero+65536*#3
write a 2097152 BS 4 => ENOSPC
read a 2097152 BS => 0 bytes *
write a 2031616 131072 5 => 65536 bytes
read a 2031616 65536 => ok 65536*#5
write a 512 100 6 => EINVAL
write a 100 512 6 => EINVAL
read a 1 BS
read a 256 BS
flush a => ok
write a 0 65536 7 fua => ok
read a 0 65536 => ok 65536*#7
write a 0 65536 8 cut=4094:2 => ok
read a 0 65536 => ok 65536*#8
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 65536 => ok 65536*#8
read a 2031616 65536 => ok 65536*#5
zero a 0 65536 => ok
read a 0 131072 => ok 65536*zero+65536*#1
discard a 65536 65536 => EOPNOTSUPP
secure-erase a 65536 65536 => EOPNOTSUPP
case no data in blocks of BS
device a size=2 blocksize=BS
read a 0 65536 => ok 65536*untouched
write a 0 65536 1 => ok
read a 0 65536 => ok 65536*untouched
write a 2097152 BS 1 => ENOSPC
discard a 0 65536 => EOPNOTSUPP
zero a 0 65536 => ok
flush a => ok
write a 0 65536 1 fua => ok
EOF
cat <<-EOF
case a disk of no sectors
device a size=0 memory_backed=1
write a 0 512 1 => ENOSPC
read a 0 512 => 0 bytes *
flush a => ok
case rmdir frees data
device a size=2 memory_backed=1
write a 0 4096 1 => ok
rmdir a => ok
device a size=2 memory_backed=1
read a 0 4096 => ok 4096*zero
case data stays while memory_backed is off
device a size=2 memory_backed=1
write a 0 4096 1 => ok
set a/power 0 => ok 0
set a/memory_backed 0 => ok 0
set a/power 1 => ok 1
get a/blocking => 1
read a 0 4096 => ok 4096*untouched
write a 0 4096 2 => ok
set a/power 0 => ok 0
set a/memory_backed 1 => ok 1
set a/power 1 => ok 1
read a 0 4096 => ok 4096*#1
case a disk that shrinks keeps what is behind its end
device a size=2 memory_backed=1
write a 1048576 4096 1 => ok
set a/power 0 => ok 0
set a/size 1 => ok 1
set a/power 1 => ok 1
read a 1048576 4096 => 0 bytes *
set a/power 0 => ok 0
set a/size 2 => ok 2
set a/power 1 => ok 1
read a 1048576 4096 => ok 4096*#1
EOF
for bs in 512 4096 65536; do
	cat <<-EOF
	case unaligned memory in blocks of $bs
	device a size=2 memory_backed=1 blocksize=$bs
	write a 0 65536 1 cut=2:510,1024:1022,4094:2,0:4096,10:3000 => ok
	read a 0 65536 => ok 65536*#1
	read a 0 65536 cut=2048:4096
	read a 0 65536 cut=0:1024,0:3072
	read a 0 65536 cut=2:510,6:2,4094:4,0:60000
	case long requests in blocks of $bs
	device a size=4 memory_backed=1 blocksize=$bs max_sectors=128
	write a 0 1048576 1 => ok
	read a 0 1048576 => ok 1048576*#1
	write a 65536 524288 2 cut=2048:100000 => ok
	read a 0 1048576 => ok 65536*#1+524288*#2+458752*#1
	EOF
done
for bs in 0 1 2; do
	cat <<-EOF
	case data with irqmode $bs
	device a size=2 memory_backed=1 irqmode=$bs submit_queues=2
	write a 0 65536 1 => ok
	write a 4096 512 2 fua => ok
	read a 0 65536 => ok 4096*#1+512*#2+60928*#1
	flush a => ok
	case no data with irqmode $bs
	device a size=2 irqmode=$bs submit_queues=2 blocking=1
	write a 0 65536 1 => ok
	read a 0 65536 => ok 65536*untouched
	flush a => ok
	EOF
done
timeouts="ETIMEDOUT 4096*zero; ETIMEDOUT"
cat <<-EOF
case a completion delay
device a size=2 irqmode=2 completion_nsec=100000000
timed 100 1000 read a 65536 4096 => ok 4096*untouched in time
case timeouts
device a size=2 memory_backed=1 irqmode=2 completion_nsec=3000000000 poll_queues=0
sysfs a queue/io_timeout 200 => ok 200
timed 2900 30000 batch threads read/a/65536/4096 write/a/0/4096/1 => $timeouts in time
log timed out => 2
sysfs a queue/io_timeout 60000 => ok 60000
read a 0 4096 => ok 4096*#1
case a timeout and a bad block
device a size=2 memory_backed=1 irqmode=2 completion_nsec=3000000000 poll_queues=0 badblocks=+8-8
sysfs a queue/io_timeout 200 => ok 200
timed 2900 30000 read a 0 8192 => ETIMEDOUT 8192*untouched in time
log timed out => 1
case a timeout without data
device a size=2 irqmode=2 completion_nsec=3000000000 hw_queue_depth=1
sysfs a queue/io_timeout 200 => ok 200
timed 2900 30000 read a 65536 4096 => ETIMEDOUT 4096*untouched in time
log timed out => 1
EOF

each_block_size <<-EOF
case discard in blocks of BS
device a size=2 memory_backed=1 discard=1 blocksize=BS
write a 0 524288 1 => ok
discard a 65536 BS => ok
read a 0 131072
discard a 131072 131072 => ok
read a 0 524288
discard a 0 2097152 => ok
read a 0 524288
discard a 100 512 => EINVAL
discard a 0 100 => EINVAL
discard a 0 0 => EINVAL
discard a 2097152 BS => EINVAL
discard a 2031616 131072 => EINVAL
discard a 18446744073709551104 1024 => EINVAL
write a 0 65536 2 => ok
discard a 0 65536 => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 524288
EOF
cat <<-EOF
case discard without memory
device a size=2 discard=1
get a/discard => 0
discard a 0 4096 => EOPNOTSUPP
case discard of the sectors of a page
device a size=2 memory_backed=1 discard=1
write a 0 8192 1 => ok
discard a 512 512 => ok
discard a 2048 1024 => ok
read a 0 8192 => ok 512*#1+512*zero+1024*#1+1024*zero+5120*#1
discard a 0 512 => ok
discard a 1024 1024 => ok
discard a 3072 1024 => ok
read a 0 8192 => ok 4096*zero+4096*#1
write a 3072 512 2 => ok
read a 0 8192 => ok 3072*zero+512*#2+512*zero+4096*#1
EOF

# With larger blocks null_blk writes beyond its pages (defect 4).
each_block_size 4096 <<-EOF
case a cache over blocks of BS
device a size=8 memory_backed=1 cache_size=1 discard=1 blocksize=BS
read a 0 65536 => ok 65536*zero
write a 0 65536 1 => ok
read a 0 131072 => ok 65536*#1+65536*zero
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 131072 => ok 131072*zero
write a 0 65536 2 => ok
flush a => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 131072 => ok 65536*#2+65536*zero
write a 131072 65536 3 fua => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 131072 65536 => ok 65536*#3
write a 262144 65536 4 => ok
write a 262144 65536 5 fua => ok
read a 262144 65536 => ok 65536*#5
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 262144 65536 => ok 65536*#5
write a 524288 65536 6 => ok
discard a 524288 65536 => ok
read a 524288 65536
EOF
cat <<-EOF
case a cache that overflows
device a size=8 memory_backed=1 cache_size=1
write a 0 4194304 1 => ok
read a 0 4194304 => ok 4194304*#1
write a 0 4194304 2 => ok
read a 0 4194304 => ok 4194304*#2
flush a => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 4194304 => ok 4194304*#2
case a cache without FUA
device a size=8 memory_backed=1 cache_size=1 fua=0
write a 0 65536 1 fua => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 65536 => ok 65536*#1
case a cache over sectors on the medium
device a size=8 memory_backed=1 cache_size=1
write a 0 512 1 fua => ok
write a 1024 512 2 => ok
read a 0 2048 => ok 512*#1+512*zero+512*#2+512*zero
write a 0 512 3 => ok
read a 0 2048 => ok 512*#3+512*zero+512*#2+512*zero
flush a => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 2048 => ok 512*#3+512*zero+512*#2+512*zero
case data under a cache is lost by power off
device a size=8 memory_backed=1 cache_size=1
write a 0 4096 1 fua => ok
write a 0 4096 2 => ok
read a 0 4096 => ok 4096*#2
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 4096
case a cache without memory
device a size=8 cache_size=1
get a/cache_size => 0
write a 0 4096 1 => ok
read a 0 4096 => ok 4096*untouched
EOF

for sizes in "512 4096" "4096 512" "1024 2048" "65536 512" "512 65536" "65536 4096"; do
	read -r before after <<<"$sizes"
	cat <<-EOF
	case data kept from blocks of $before to blocks of $after
	device a size=2 memory_backed=1 discard=1 blocksize=$before
	write a 0 262144 1 => ok
	set a/power 0 => ok 0
	set a/blocksize $after => ok $after
	set a/power 1 => ok 1
	read a 0 131072
	write a 65536 65536 2 => ok
	read a 65536 65536 => ok 65536*#2
	discard a 131072 65536 => ok
	EOF
done
cat <<-EOF
case data kept while all settings change
device a size=4 memory_backed=1
write a 1048576 65536 1 => ok
set a/power 0 => ok 0
set a/irqmode 2
set a/submit_queues 3
set a/hw_queue_depth 2
set a/virt_boundary 1
set a/discard 1
set a/cache_size 1
set a/max_sectors 16
set a/power 1 => ok 1
read a 1048576 65536 => ok 65536*#1
discard a 1048576 4096 => ok
write a 1056768 4096 2 => ok
read a 1048576 16384 => ok 4096*zero+4096*#1+4096*#2+4096*#1
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 1048576 16384
case data kept with blocking=0
device a size=2 memory_backed=1
get a/blocking => 1
set a/power 0 => ok 0
set a/blocking 0 => ok 0
set a/power 1 => ok 1
get a/blocking => 1
case power off with a cache that overflows
device a size=8 memory_backed=1 cache_size=1
$(printf 'write a %s 65536 1 => ok\n' {0..2031616..65536})
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 2097152
case power off with a full cache
device a size=8 memory_backed=1 cache_size=1
write a 4194304 786432 1 => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 4194304 786432 => ok 786432*zero
case power off after a flush, and writes elsewhere
device a size=8 memory_backed=1 cache_size=1
write a 5242880 1048576 1 => ok
write a 4194304 65536 2 => ok
flush a => ok
write a 6291456 786432 3 => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 6291456 786432 => ok 786432*zero
read a 5242880 1048576 => ok 1048576*#1
EOF
