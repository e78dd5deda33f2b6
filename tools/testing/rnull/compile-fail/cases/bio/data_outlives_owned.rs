// SPDX-License-Identifier: GPL-2.0

//! What is borrowed from a bio that is kept does not outlive the bio: the disk may be removed then.

use kernel::block::bio_based::{Operations, OwnedBio};

pub fn case<T: Operations<QueueData = u32>>(bio: OwnedBio<T>) -> u32 {
    let data = bio.queue_data();
    #[cfg(not(bad))]
    let data = *data;
    bio.end(Ok(())); //~ ERROR E0505: cannot move out of `bio` because it is borrowed
    #[cfg(bad)]
    let data = *data;
    data
}
