// SPDX-License-Identifier: GPL-2.0

//! A bio and its memory cannot be used after its end.

use kernel::block::{
    bio::Transfer,
    bio_based::{Operations, OwnedBio},
};

pub fn memory<T: Operations>(bio: OwnedBio<T>) {
    let transfer = bio.transfer();
    #[cfg(not(bad))]
    drop(transfer);
    bio.end(Ok(())); //~ ERROR E0505: cannot move out of `bio` because it is borrowed
    #[cfg(bad)]
    if let Transfer::FromDisk(mut to) = transfer {
        to.fill(0);
    }
}

pub fn sector<T: Operations>(bio: OwnedBio<T>) {
    bio.end(Ok(()));
    #[cfg(bad)]
    let _ = bio.sector(); //~ ERROR E0382: borrow of moved value: `bio`
}

pub fn named(_: Transfer<'_>) {}
