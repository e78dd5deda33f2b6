// SPDX-License-Identifier: GPL-2.0

//! A disk that gets bios has no tag set, and its interface is part of its type.

use kernel::block::{
    bio_based::Operations,
    gendisk::{Bios, GenDisk},
};

pub fn case<T: Operations>(disk: &GenDisk<T, Bios>) -> &T::QueueData {
    #[cfg(bad)]
    disk.tag_set(); //~ ERROR E0599
    disk.queue_data()
}

#[cfg(bad)]
pub fn other<T: Operations>(disk: &GenDisk<T>) {} //~ ERROR E0277: the trait bound `T: kernel::block::mq::Operations` is not satisfied
