// SPDX-License-Identifier: GPL-2.0

//! The data of the disk is valid for the whole callback, but no longer.

use kernel::block::bio_based::{Operations, SubmittedBio};

#[cfg(bad)]
pub fn escapes<T: Operations<QueueData = u32>>(bio: SubmittedBio<'_, T>) -> &'static u32 {
    bio.queue_data() //~ ERROR lifetime may not live long enough
}

pub fn stays<T: Operations<QueueData = u32>>(bio: SubmittedBio<'_, T>) -> u32 {
    let data = bio.queue_data();
    bio.end(Ok(()));
    *data
}
