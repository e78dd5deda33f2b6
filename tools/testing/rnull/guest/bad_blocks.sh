# SPDX-License-Identifier: GPL-2.0
# The checks of bad blocks in `features`, which defines the functions used here.
# shellcheck shell=bash disable=SC2034,SC2154 # what features or lib.sh set, or read

bad_blocks_text() {
	what="bad blocks, text"
	mkdir "$tree/text"
	mark text '+1-1000' ok '1 512,513 488,'
	mark text '-3-4' ok '1 2,5 508,513 488,'
	mark text '\s\t+2000-2000\n\n' ok '1 2,5 508,513 488,2000 1,'
	mark text '+0x7d1-03722' ok '1 2,5 508,513 488,2000 3,'
	mark text '++1-+2' ok '1 2,5 508,513 488,2000 3,'
	for text in 1-2 +1 +-1 +1- + - '+2-1' '+1-2-3' '+1\s-2' '+a-b' '+1-2x' '+1--2' '*1-2' '\s'; do
		mark text "$text" EINVAL '1 2,5 508,513 488,2000 3,'
	done
	mark text '+99999999999999999999-1' ERANGE '1 2,5 508,513 488,2000 3,'
	mark text '+0-18446744073709551615' EINVAL '1 2,5 508,513 488,2000 3,'
	rmdir "$tree/text"
}

bad_blocks() {
	what="bad blocks, 512 bytes"
	on bad size=16 memory_backed=1
	disk fill /dev/bad 1 0 1048576 >/dev/null
	mark bad +1000-1007 ok '1000 8,'
	io bad read 992 8 ok
	io bad read 992 9 EIO
	io bad read 1007 1 EIO
	io bad read 1008 8 ok
	io bad write 900 200 EIO
	holds bad 1 900 100
	mark bad -1002-1002 ok '1000 2,1003 5,'
	io bad write 1002 1 ok
	io bad read 1001 2 EIO
	io bad read 1002 2 EIO
	equal "$what: power off" "$(power bad 0)" ok
	mark bad +1010-1010 ok '1000 2,1003 5,1010 1,'
	equal "$what: power on again" "$(power bad 1)" ok
	io bad read 1010 1 EIO
	io bad read 1000 1 EIO
	io bad read 1008 2 ok
	mark bad -0-2000 ok ''
	io bad read 1000 16 ok
	remove bad >/dev/null

	what="bad blocks, once"
	on bad size=16 memory_backed=1 badblocks_once=1
	mark bad +1000-1007 ok '1000 8,'
	mark bad +1010-1019 ok '1000 8,1010 10,'
	equal "$what: the setting stays while on" "$(syscall put "$tree/bad/badblocks_once" 0)" EBUSY
	io bad write 1004 10 EIO
	mark bad -0-0 ok '1010 10,'
	io bad write 1004 10 EIO
	io bad write 1004 10 ok
	mark bad -0-0 ok ''
	remove bad >/dev/null

	what="bad blocks, partial"
	on bad size=16 memory_backed=1 blocksize=4096 badblocks_partial_io=1
	disk fill /dev/bad 1 0 1048576 >/dev/null
	mark bad +1020-1020 ok '1020 1,'
	io bad write 1000 64 EIO
	holds bad zeros 1000 16
	io bad write 1016 8 EIO
	mark bad -1020-1020 ok ''
	holds bad 1 1016 48
	remove bad >/dev/null
}
