// SPDX-License-Identifier: GPL-2.0

//! The block layer, for drivers of block devices.
//!
//! A driver implements [`mq::Operations`], creates an [`mq::TagSet`] that holds the requests,
//! builds a [`GenDisk`](gendisk::GenDisk) on it, then adds the disk to the system. The block layer
//! then passes requests to the driver, each one an owned value that is started, processed and
//! ended. A driver that implements [`bio_based::Operations`] instead gets the bios themselves, in
//! the task that submits them.
//!
//! Positions and lengths on a disk are counted in units of 512 bytes everywhere, regardless of the
//! block size of the disk; see [`Sector`] and [`Sectors`].
//!
//! C headers: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h),
//! [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

pub mod gendisk;

pub mod bio_based;

pub mod bdev;

pub mod major;
pub mod mq;

pub mod limits;

pub mod bio;

pub mod badblocks;
pub mod zone;

pub mod sector;
pub mod status;

pub use self::{
    sector::{
        Sector,
        Sectors,
        SECTOR_SHIFT,
        SECTOR_SIZE, //
    },
    status::{
        BlkResult,
        BlkStatus, //
    },
};

use crate::prelude::*;

// `sector` imports only `core`, so that it can be tested on any machine.
static_assert!(SECTOR_SHIFT == crate::bindings::SECTOR_SHIFT);
static_assert!(SECTOR_SIZE == crate::bindings::SECTOR_SIZE);
