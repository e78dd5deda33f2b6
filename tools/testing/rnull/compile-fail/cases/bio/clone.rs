// SPDX-License-Identifier: GPL-2.0

//! The handle of a bio cannot be cloned.

use kernel::block::bio_based::{Operations, OwnedBio};

pub fn case<T: Operations>(bio: OwnedBio<T>) {
    #[cfg(bad)]
    bio.clone().end(Ok(())); //~ ERROR E0599: no method named `clone` found for struct `OwnedBio
    bio.end(Ok(()));
}
