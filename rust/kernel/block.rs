// SPDX-License-Identifier: GPL-2.0

//! The block layer, as seen by a driver that serves I/O.
//!
//! A driver implements [`mq::Operations`], makes a [`mq::TagSet`] that holds the requests, builds a
//! [`GenDisk`](gendisk::GenDisk) on it, then adds the disk to the system. From then on the block
//! layer hands it requests, each one an owned value that is started, served and ended.
//!
//! Positions and lengths on a disk are counted in units of 512 bytes everywhere, whatever the
//! block size of the disk; see [`Sector`] and [`Sectors`].
//!
//! C headers: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h),
//! [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

pub mod gendisk;
pub mod limits;
pub mod major;
pub mod mq;

pub mod bio;

pub mod badblocks;

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

// `sector` imports nothing of the kernel, so that it can be tested on any machine.
static_assert!(SECTOR_SHIFT == crate::bindings::SECTOR_SHIFT);
static_assert!(SECTOR_SIZE == crate::bindings::SECTOR_SIZE);
