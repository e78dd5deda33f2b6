// SPDX-License-Identifier: GPL-2.0

//! A bio cannot be used while it is in a delay queue, and it must be kept to be put there.

use kernel::{
    block::bio_based::{DelayQueue, Operations, OwnedBio, SubmittedBio},
    prelude::*, //
};

pub fn owned<T: Operations>(queue: &DelayQueue<T>, bio: OwnedBio<T>) {
    let _ = queue.end_later(bio, Ok(()), GFP_KERNEL);
    #[cfg(bad)]
    let _ = bio.transfer(); //~ ERROR E0382: borrow of moved value: `bio`
}

pub fn submitted<T: Operations>(queue: &DelayQueue<T>, bio: SubmittedBio<'_, T>) {
    #[cfg(bad)]
    let _ = queue.end_later(bio, Ok(()), GFP_KERNEL); //~ ERROR E0308: mismatched types
    #[cfg(not(bad))]
    let _ = queue.end_later(bio.keep(), Ok(()), GFP_KERNEL);
}
