// SPDX-License-Identifier: GPL-2.0

//! A bio cannot be ended twice, nor after it was kept.

use kernel::block::bio_based::{Operations, OwnedBio, SubmittedBio};

pub fn submitted<T: Operations>(bio: SubmittedBio<'_, T>) {
    bio.end(Ok(()));
    #[cfg(bad)]
    bio.end(Ok(())); //~ ERROR E0382: use of moved value: `bio`
}

pub fn kept<T: Operations>(bio: SubmittedBio<'_, T>) -> OwnedBio<T> {
    let kept = bio.keep();
    #[cfg(bad)]
    bio.end(Ok(())); //~ ERROR E0382: use of moved value: `bio`
    kept
}

pub fn owned<T: Operations>(bio: OwnedBio<T>) {
    bio.end(Ok(()));
    #[cfg(bad)]
    bio.end(Ok(())); //~ ERROR E0382: use of moved value: `bio`
}
