// SPDX-License-Identifier: GPL-2.0

//! A disk: built, then added to the system until dropped.
//!
//! The two steps are separate because the block layer submits I/O before adding returns: it scans
//! for partitions. Everything that the driver needs for I/O must exist when the disk is built.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

mod builder;
mod disk;
mod freeze;
mod interface;
mod operations;

pub use self::{
    builder::GenDiskBuilder,
    disk::{
        GenDisk,
        NewDisk, //
    },
    freeze::Frozen,
    interface::{
        Bios,
        Driver,
        Requests, //
    }, //
};
pub use crate::device_class::Parent;
