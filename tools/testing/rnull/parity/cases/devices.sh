# SPDX-License-Identifier: GPL-2.0
# Prints the cases of the life of devices: names, power, queues, unloading.
# shellcheck shell=bash

cat <<-EOF
case power
mkdir a => ok
set a/power 0 => ok 0
set a/power 1 => ok 1
set a/power 1 => ok 1
set a/power y => ok 1
set a/power abc => EINVAL 1
attributes a
disk a
disks => a
set a/power 0 => ok 0
set a/power 0 => ok 0
set a/size 12 => ok 12
traces => major subsystem module
case changing queues while on
device a size=16
set a/submit_queues 2 => ok 2
disk a
set a/submit_queues 1 => ok 1
set a/submit_queues 0 => EINVAL 1
set a/submit_queues 99 => EINVAL 1
set a/submit_queues 3 => ok 3
set a/submit_queues 4 => ok 4
set a/submit_queues 5 => EINVAL 4
set a/submit_queues 18446744073709551615 => ERANGE 4
set a/submit_queues abc => EINVAL 4
set a/submit_queues \e => EFAULT 4
disk a
case changing poll queues while on
device a size=16
set a/poll_queues 0 => ok 0
disk a
set a/poll_queues 1 => ok 1
disk a
set a/poll_queues 2 => EINVAL 1
set a/submit_queues 3 => ok 3
disk a
set a/poll_queues 0 => ok 0
set a/power 0 => ok 0
set a/poll_queues 9 => ok 9
set a/power 1 => ok 1
attributes a
set a/power 0 => ok 0
set a/poll_queues 0 => ok 0
set a/power 1 => ok 1
disk a
set a/poll_queues 1 => ok 1
disk a
write a 0 4096 1 => ok
case changing queues of shared tags while on
load nr_devices=0 submit_queues=2
device a size=16 shared_tags=1
set a/submit_queues 1 => EINVAL 2
set a/submit_queues 2 => EINVAL 2
set a/poll_queues 0
disk a
device b size=16 shared_tags=1 hw_queue_depth=3 submit_queues=4 no_sched=1
attributes b
disk b
try-unload => EAGAIN
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
try-unload => ok
traces =>
case a long name
mkdir a23456789b23456789c23456789d23456789e23456789 => ok
set a23456789b23456789c23456789d23456789e23456789/power 1
disks
disk a23456789b23456789c23456789d2
mkdir a23456789b23456789c23456789d2 => EEXIST
rmdir a23456789b23456789c23456789d23456789e23456789 => ok
disks =>
case too long a name
mkdir $(printf 'x%.0s' {1..254}) => ENAMETOOLONG
mkdir $(printf 'y%.0s' {1..200}) => ok
case names with special characters
mkdir a.b:c,d => ok
set a.b:c,d/power 1 => ok 1
disks
case two directories for one disk
mkdir a23456789b23456789c23456789d2-1 => ok
mkdir a23456789b23456789c23456789d2-2 => ok
set a23456789b23456789c23456789d2-1/power 1 => ok 1
set a23456789b23456789c23456789d2-2/power 1 => EEXIST 0
disks
case indices
device a size=1
device b size=1
device c size=1
get a/index => 0
get b/index => 1
get c/index => 2
set b/power 0 => ok 0
get b/index => 1
device d size=1
get d/index => 1
set b/power 1 => ok 1
get b/index => 3
disks => a b c d
try-unload => EAGAIN
case a name like that of a disk made by parameters
load nr_devices=2 gb=1
mkdir DISK1 => EEXIST
mkdir DISK2 => ok
set DISK2/size 1
set DISK2/power 1 => ok 1
get DISK2/index => 2
disks => DISK0 DISK1 DISK2
set DISK2/power 0
disks => DISK0 DISK1
rmdir DISK2 => ok
try-unload => ok
traces =>
case unload while a disk is open
load gb=1
keep-open DISK0 => ok
try-unload => EAGAIN
close DISK0 => ok
unload => ok
case rmdir while the disk is open
device a size=1 memory_backed=1
keep-open a => ok
write a 0 4096 1 => ok
rmdir a => ok
disks =>
try-unload => EAGAIN
close a => ok
unload => ok
case rmdir while files are open
mkdir a => ok
keep-open a/size => ok
keep-open a/power => ok
keep-open a/badblocks => ok
keep-open a/submit_queues => ok
rewrite a/size 5 => ok
get a/size => 5
rewrite a/power 1 => ok
rewrite a/size 6 => EBUSY
disks => a
rmdir a => ok
disks =>
reread a/size => ENOENT
rewrite a/size 7 => ENOENT
rewrite a/power 0 => ENOENT
rewrite a/power 1 => ENOENT
reread a/badblocks => ENOENT
rewrite a/badblocks +1-1 => ENOENT
rewrite a/submit_queues 2 => ENOENT
mkdir a => ok
rewrite a/size 7 => ENOENT
rewrite a/power 1 => ENOENT
get a/size => 256000
close a/size => ok
close a/power => ok
close a/badblocks => ok
try-unload => EAGAIN
rmdir a => ok
close a/submit_queues => ok
unload => ok
case power off while open
device a size=1 memory_backed=1
write a 0 4096 1 => ok
keep-open a => ok
set a/power 0 => ok 0
disks =>
set a/power 1 => ok 1
read a 0 4096 => ok 4096*#1
close a => ok
rmdir a => ok
case unload with parameters only
load nr_devices=3 gb=1 memory_backed=1
write DISK1 0 4096 1 => ok
read DISK2 0 4096 => ok 4096*zero
try-unload => ok
traces =>
EOF
