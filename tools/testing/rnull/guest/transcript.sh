# SPDX-License-Identifier: GPL-2.0
# Compares what two drivers answer to the same questions.
# shellcheck shell=bash disable=SC2034,SC2154 # for the scripts that read this, from lib.sh

# The attributes, parameters that both drivers have.
common_attributes=(size completion_nsec submit_queues poll_queues home_node queue_mode blocksize max_sectors irqmode hw_queue_depth
	index blocking use_per_node_hctx memory_backed virt_boundary no_sched rotational
	badblocks badblocks_once badblocks_partial_io mbps)
common_parameters=(nr_devices gb bs memory_backed irqmode completion_nsec submit_queues poll_queues hw_queue_depth home_node no_sched
	rotational max_sectors virt_boundary blocking use_per_node_hctx queue_mode mbps)
limits=(logical_block_size physical_block_size minimum_io_size optimal_io_size max_hw_sectors_kb max_sectors_kb
	max_segments max_segment_size dma_alignment io_timeout nr_requests write_cache fua rotational virt_boundary_mask
	scheduler zoned discard_max_bytes write_zeroes_max_bytes io_poll stable_writes)

# answer KEY: what comes on standard input, in one line, with the driver's own names replaced.
answer() {
	local text

	IFS= read -r -d '' text || true
	text=${text//$disk/DISK} text=${text//$module/MODULE} text=${text//$'\n'/ }
	printf '%s\t%s\n' "$1" "${text% }" >>"/tmp/transcript.$asked"
}

# shape NAME: what sysfs shows of a disk.
shape() {
	local queue=/sys/block/$1/queue maps

	[ -d "/sys/block/$1" ] || {
		echo "no disk"
		return
	}
	maps=("/sys/block/$1/mq"/*)
	call show "${limits[@]/#/$queue/}" "/sys/block/$1"/{size,range,removable,ro,mq/0/nr_tags}
	echo "queues=${#maps[@]}"
}

# ask_all KEY DIRECTORY: puts each line "ATTRIBUTE TEXT" of standard input; one answer for each.
ask_all() {
	local -a lines said
	local i

	mapfile -t lines
	mapfile -t said < <(printf '%s\n' "${lines[@]/#/$2/}" | call put-all)
	[ ${#lines[@]} -gt 0 ] && [ ${#said[@]} -eq ${#lines[@]} ] ||
		not_ok "$driver: $1" "${#said[@]} answers to ${#lines[@]} questions"
	for i in "${!lines[@]}"; do
		answer "$1$i: ${lines[i]/ / <- }" <<<"${said[i]-no answer}"
	done
}

# compare: a check for each question; what is only asked of one driver fails, too.
compare() {
	local -A ours theirs
	local key text

	while IFS=$'\t' read -r key text; do
		ours[$key]=$text
	done </tmp/transcript.ours
	while IFS=$'\t' read -r key text; do
		[ "$text" != "no answer" ] || text="an answer from null_blk"
		equal "as null_blk: $key" "${ours[$key]-no answer}" "$text"
		theirs[$key]=$text
	done </tmp/transcript.theirs
	equal "as null_blk: number of questions" "${#ours[@]}" "${#theirs[@]}"
	[ "${#theirs[@]}" -gt 0 ] || not_ok "as null_blk" "nothing was asked"
}

# both FUNCTION: asks null_blk, then rnull; OTHER names a stand-in for rnull, to try the questions themselves.
both() {
	rm -f /tmp/transcript.*
	use null_blk
	asked=theirs
	"$1"
	use "${OTHER:-rnull}"
	asked=ours
	"$1"
	compare
}
