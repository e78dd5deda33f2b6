# SPDX-License-Identifier: GPL-2.0
# Prints the questions about the life of devices: names, power, queues, unloading.
# shellcheck shell=bash

names() {
	cat <<-EOF
	case power
	mkdir a => ok
	put a/power 0 => ok 0
	put a/power 1 => ok 1
	put a/power 1 => ok 1
	put a/power y => ok 1
	put a/power abc => EINVAL 1
	values a
	disk a
	disks => a
	put a/power 0 => ok 0
	put a/power 0 => ok 0
	put a/size 12 => ok 12
	left => major tree module
	case live queues
	device a size=16
	put a/submit_queues 2 => ok 2
	disk a
	put a/submit_queues 1 => ok 1
	put a/submit_queues 0 => EINVAL 1
	put a/submit_queues 99 => EINVAL 1
	put a/submit_queues 3 => ok 3
	put a/submit_queues 4 => ok 4
	put a/submit_queues 5 => EINVAL 4
	put a/submit_queues 18446744073709551615 => ERANGE 4
	put a/submit_queues abc => EINVAL 4
	put a/submit_queues \e => EFAULT 4
	disk a
	case live poll queues
	device a size=16
	put a/poll_queues 0 => ok 0
	disk a
	put a/poll_queues 1 => ok 1
	disk a
	put a/poll_queues 2 => EINVAL 1
	put a/submit_queues 3 => ok 3
	disk a
	put a/poll_queues 0 => ok 0
	put a/power 0 => ok 0
	put a/poll_queues 9 => ok 9
	put a/power 1 => ok 1
	values a
	put a/power 0 => ok 0
	put a/poll_queues 0 => ok 0
	put a/power 1 => ok 1
	disk a
	put a/poll_queues 1 => ok 1
	disk a
	write a 0 4096 1 => ok
	case live queues of shared tags
	load nr_devices=0 submit_queues=2
	device a size=16 shared_tags=1
	put a/submit_queues 1 => EINVAL 2
	put a/submit_queues 2 => EINVAL 2
	put a/poll_queues 0
	disk a
	device b size=16 shared_tags=1 hw_queue_depth=3 submit_queues=4 no_sched=1
	values b
	disk b
	unload-now => EAGAIN
	case directories
	load
	mkdir a => ok
	mkdir a => EEXIST
	mkdir DISK0 => EEXIST
	mkdir b/c => ENOENT
	mkdir a/c => EPERM
	rmdir a/size => ENOTDIR
	rmdir b => ENOENT
	rename a b => EPERM
	link a b => EPERM
	link a/size a/x => EPERM
	mode a => 755
	mode . => 755
	mode features => 444
	open features w => EACCES
	open a/size rw => ok
	files a
	features
	rmdir a => ok
	rmdir a => ENOENT
	rmdir DISK0 => ENOENT
	unload-now => ok
	left =>
	case a long name
	mkdir a23456789b23456789c23456789d23456789e23456789 => ok
	put a23456789b23456789c23456789d23456789e23456789/power 1
	disks
	disk a23456789b23456789c23456789d2
	mkdir a23456789b23456789c23456789d2 => EEXIST
	rmdir a23456789b23456789c23456789d23456789e23456789 => ok
	disks =>
	case a name that is too long
	mkdir $(printf 'x%.0s' {1..254}) => ENAMETOOLONG
	mkdir $(printf 'y%.0s' {1..200}) => ok
	case names of disks with other characters
	mkdir a.b:c,d => ok
	put a.b:c,d/power 1 => ok 1
	disks
	case two directories for one disk
	mkdir a23456789b23456789c23456789d2-1 => ok
	mkdir a23456789b23456789c23456789d2-2 => ok
	put a23456789b23456789c23456789d2-1/power 1 => ok 1
	put a23456789b23456789c23456789d2-2/power 1 => EEXIST 0
	disks
	case indices
	device a size=1
	device b size=1
	device c size=1
	get a/index => 0
	get b/index => 1
	get c/index => 2
	put b/power 0 => ok 0
	get b/index => 1
	device d size=1
	get d/index => 1
	put b/power 1 => ok 1
	get b/index => 3
	disks => a b c d
	unload-now => EAGAIN
	case a disk made by parameters beside one of its name
	load nr_devices=2 gb=1
	mkdir DISK1 => EEXIST
	mkdir DISK2 => ok
	put DISK2/size 1
	put DISK2/power 1 => ok 1
	get DISK2/index => 2
	disks => DISK0 DISK1 DISK2
	put DISK2/power 0
	disks => DISK0 DISK1
	rmdir DISK2 => ok
	unload-now => ok
	left =>
	case a disk that is open
	load gb=1
	hold DISK0 => ok
	unload-now => EAGAIN
	drop DISK0 => ok
	unload => ok
	case a disk that goes while it is open
	device a size=1 memory_backed=1
	hold a => ok
	write a 0 4096 1 => ok
	rmdir a => ok
	disks =>
	unload-now => EAGAIN
	drop a => ok
	unload => ok
	case files that are open while their device goes
	mkdir a => ok
	hold a/size => ok
	hold a/power => ok
	hold a/badblocks => ok
	hold a/submit_queues => ok
	held a/size 5 => ok
	get a/size => 5
	held a/power 1 => ok
	held a/size 6 => EBUSY
	disks => a
	rmdir a => ok
	disks =>
	held a/size => ENOENT
	held a/size 7 => ENOENT
	held a/power 0 => ENOENT
	held a/power 1 => ENOENT
	held a/badblocks => ENOENT
	held a/badblocks +1-1 => ENOENT
	held a/submit_queues 2 => ENOENT
	mkdir a => ok
	held a/size 7 => ENOENT
	held a/power 1 => ENOENT
	get a/size => 256000
	drop a/size => ok
	drop a/power => ok
	drop a/badblocks => ok
	unload-now => EAGAIN
	rmdir a => ok
	drop a/submit_queues => ok
	unload => ok
	case power off while open
	device a size=1 memory_backed=1
	write a 0 4096 1 => ok
	hold a => ok
	put a/power 0 => ok 0
	disks =>
	put a/power 1 => ok 1
	read a 0 4096 => ok 4096*#1
	drop a => ok
	rmdir a => ok
	case unload with parameters only
	load nr_devices=3 gb=1 memory_backed=1
	write DISK1 0 4096 1 => ok
	read DISK2 0 4096 => ok 4096*zero
	unload-now => ok
	left =>
	EOF
}
