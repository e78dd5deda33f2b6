// SPDX-License-Identifier: GPL-2.0

//! A disk: built, then added, on the system until dropped.
//!
//! The two steps are apart because I/O runs before adding returns: the block layer looks for
//! partitions. So whatever the driver needs for I/O has to be there when the disk is built.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

mod builder;
mod disk;
mod operations;

pub use self::{
    builder::GenDiskBuilder,
    disk::{
        GenDisk,
        NewDisk, //
    },
};
