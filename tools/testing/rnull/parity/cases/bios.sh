# SPDX-License-Identifier: GPL-2.0
# Prints the cases of data, bad blocks, batches once more, with disks that get bios.
# shellcheck shell=bash disable=SC2154 # a variable of the script that reads this

# null_blk has no such disks. It makes 2 of queue_mode=0, with a message, so that its answers are
# those of disks that get requests. A case that makes no disk, or loads the module, is not about the
# mode; and cases of polling or of a bandwidth limit have no sense without them.
(
	# Fewer sizes, as they matter in the same way.
	each_block_size() {
		local text bs

		text=$(cat)
		for ((bs = 512; bs <= ${1:-65536}; bs *= 8)); do
			echo "${text//BS/$bs}"
		done
	}

	for name in data badblocks batches; do
		# shellcheck source=/dev/null
		. "$here/cases/$name.sh"
	done
) | awk '
	function print_case() {
		if (makes_disk && !leave_out)
			printf "%s", text
		text = ""
		makes_disk = leave_out = 0
	}
	/^#/ { next }
	/^case / { print_case(); $0 = $0 ", by bios" }
	/^device / { makes_disk = 1; $2 = $2 " queue_mode=0" }
	/^load/ || /batch (polled|late)/ || /mbps=1 / { leave_out = 1 }
	{ text = text $0 "\n" }
	END { print_case() }'
cat <<-'EOF'
case polling, by bios
device a size=2 memory_backed=1 queue_mode=0
write a 0 4096 9 => ok
batch polled write/a/0/4096/1 read/a/8192/4096 => ok; ok 4096*zero
read a 0 4096 => ok 4096*#1
case attributes, by bios
device a size=2 memory_backed=1 queue_mode=0 mbps=5 submit_queues=2 hw_queue_depth=3
get a/queue_mode => 2
get a/mbps => 5
get a/submit_queues => 2
get a/hw_queue_depth => 3
set a/submit_queues 3 => ok 3
set a/poll_queues 0 => ok 0
set a/queue_mode 2 => EBUSY *
set a/power 0 => ok 0
get a/queue_mode => 2
get a/mbps => 5
case attributes without effect, by bios
device a size=2 memory_backed=1 queue_mode=0 shared_tags=1 no_sched=1 use_per_node_hctx=1
get a/shared_tags => 1
get a/no_sched => 1
get a/use_per_node_hctx => 1
write a 0 65536 1 => ok
read a 0 65536 => ok 65536*#1
case a zoned disk gets no bios
device a size=16 zoned=1 zone_size=4 queue_mode=0
get a/queue_mode => 2
write a 0 4096 1 => ok
write a 8192 4096 1 => EIO
case from bios to requests and back
device a size=2 memory_backed=1 discard=1 queue_mode=0
write a 0 65536 1 => ok
set a/power 0 => ok 0
set a/queue_mode 2 => ok 2
set a/power 1 => ok 1
read a 0 65536 => ok 65536*#1
write a 4096 4096 2 => ok
discard a 12288 4096 => ok
set a/power 0 => ok 0
set a/queue_mode 0 => ok 0
set a/power 1 => ok 1
read a 0 65536 => ok 4096*#1+4096*#2+4096*#1+4096*zero+49152*#1
EOF
