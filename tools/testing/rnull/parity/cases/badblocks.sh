# SPDX-License-Identifier: GPL-2.0
# Prints the cases of bad blocks; throttling is last.
# shellcheck shell=bash

cat <<-EOF
case badblocks: texts
mkdir a => ok
get a/badblocks =>
EOF
for text in +1-1000 -3-4 +1-1 +5-3 1-2 +1 + - +- '\s+7-8\s' '+7-8\n' '+\s7-8' +0x10-0x20 \
	+010-011 +a-b +1-b +-1-2 +1--2 +18446744073709551616-18446744073709551617 \
	+0-18446744073709551615 -0-18446744073709551615 +0-0 -0-0 +2000-2001 +2003-2004 +2002-2002 \
	-2001-2003 +1-2-3 '\e' +100000-200000 -100500-100600 -0-400000; do
	echo "set a/badblocks $text"
done
cat <<-EOF
case a bad block beyond the range of the table
mkdir a => ok
set a/badblocks +18446744073709551615-18446744073709551615
get a/badblocks
case bad blocks while on
device a size=8 memory_backed=1
set a/badblocks +200-200
read a 102400 512 => EIO 512*untouched
read a 101888 512 => ok 512*zero
read a 102912 512 => ok 512*zero
read a 98304 8192 => EIO *
write a 98304 8192 1 => EIO
set a/badblocks -200-200
read a 98304 8192 => ok 8192*zero
flush a => ok
set a/badblocks +300-400
get a/badblocks => 300 101
set a/power 0 => ok 0
get a/badblocks => 300 101
set a/power 1 => ok 1
read a 153600 512 => EIO *
rmdir a => ok
mkdir a => ok
get a/badblocks =>
case a full table of bad blocks
mkdir a => ok
EOF
for ((text = 0; text < 520; text++)); do
	echo "set a/badblocks +$((text * 4))-$((text * 4))"
done
each_block_size <<-EOF
case bad blocks in blocks of BS
device a size=8 memory_backed=1 blocksize=BS badblocks_once=0 badblocks_partial_io=0
write a 1048576 131072 1 => ok
set a/badblocks +2177-2178
write a 1048576 131072 2 => EIO
read a 1048576 131072 => EIO *
set a/badblocks -0-10000
read a 1048576 131072
case partial bad blocks in blocks of BS
device a size=8 memory_backed=1 blocksize=BS badblocks_partial_io=1
write a 1048576 65536 1 => ok
set a/badblocks +2113-2114
write a 1048576 65536 2 => EIO
read a 1048576 65536 => EIO *
set a/badblocks -0-10000
read a 1048576 65536
case bad blocks once in blocks of BS
device a size=8 memory_backed=1 blocksize=BS badblocks_once=1
write a 1048576 131072 1 => ok
set a/badblocks +2177-2178
set a/badblocks +2200-2210
write a 1048576 65536 2 => ok
read a 1048576 131072 => EIO *
get a/badblocks
read a 1048576 131072
get a/badblocks
read a 1048576 131072
case bad blocks once, partial, discarded in blocks of BS
device a size=8 memory_backed=1 blocksize=BS badblocks_once=1 badblocks_partial_io=1 discard=1
write a 1048576 65536 1 => ok
set a/badblocks +2113-2114
discard a 1048576 65536 => EIO
get a/badblocks
read a 1048576 65536
set a/badblocks +2113-2114
zero a 1048576 65536
read a 1048576 65536
read a 1048576 65536
case bad blocks without memory in blocks of BS
device a size=8 blocksize=BS badblocks_partial_io=1
set a/badblocks +2113-2114
write a 1048576 65536 2 => EIO
read a 1048576 65536 => EIO *
read a 1114112 65536 => ok *
EOF

cat <<-EOF
# Requests that fit into 20 ms of bandwidth; null_blk never completes a longer one (defect 2).
case throttled
device a size=64 mbps=1 max_sectors=32
timed 300 8000 read a 1048576 524288 => ok 524288*untouched in time
case throttled at the maximum
device a size=64 mbps=40960 memory_backed=1
write a 0 1048576 1 => ok
read a 0 1048576 => ok 1048576*#1
set a/power 0 => ok 0
set a/power 1 => ok 1
read a 0 1048576 => ok 1048576*#1
set a/power 0 => ok 0
rmdir a => ok
EOF
