// SPDX-License-Identifier: GPL-2.0

//! A bio that was not kept cannot leave the callback.

use kernel::block::bio_based::{Operations, OwnedBio, SubmittedBio};

#[cfg(bad)]
pub fn stored<T: Operations>(
    bio: SubmittedBio<'_, T>,
    place: &mut Option<SubmittedBio<'static, T>>,
) {
    *place = Some(bio); //~ ERROR lifetime may not live long enough
}

pub fn kept<T: Operations>(bio: SubmittedBio<'_, T>, place: &mut Option<OwnedBio<T>>) {
    *place = Some(bio.keep());
}
