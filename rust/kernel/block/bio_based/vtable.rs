// SPDX-License-Identifier: GPL-2.0

//! The function that C calls with each bio.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::{
    Operations,
    SubmittedBio, //
};
use crate::{
    bindings,
    block::mq::memalloc_noio, //
};
use core::ptr::NonNull;

/// Passes a bio to the driver, or the part of it that fits the limits of the disk.
///
/// # Safety
///
/// C calls this as `submit_bio`, for a disk of `T`, and passes ownership of the bio.
pub(crate) unsafe extern "C" fn submit_bio<T: Operations>(bio: *mut bindings::bio) {
    memalloc_noio(|| {
        // The rest of a bio that is split is added to the bios that the task submits after this
        // callback. C ends a bio that cannot be split, and returns NULL.
        //
        // SAFETY: By the safety requirement. C holds a reference to `q_usage_counter`, so the
        // limits do not change.
        let bio = unsafe { bindings::bio_split_to_limits(bio) };
        if let Some(bio) = NonNull::new(bio) {
            // SAFETY: By the safety requirement, the bio is owned, it is for a disk of `T`, and C
            // holds a reference to `q_usage_counter` until the callback has returned.
            T::submit_bio(unsafe { SubmittedBio::from_raw(bio) });
        }
    });
}
