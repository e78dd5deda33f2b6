// SPDX-License-Identifier: GPL-2.0

//! What may happen to the requests of a disk on their way.
//!
//! Few disks have any of it, so the way of a request asks [`Conditions::any`] once, and what is
//! behind it is kept off that way.

use kernel::{
    block::{
        mq::{
            Operations,
            Request, //
        },
        BlkResult, //
    },
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// What may happen to the requests of a disk.
pub(crate) struct Conditions {
    /// Whether there is anything; it may come while the disk is on.
    any: Atomic<bool>,
}

impl Conditions {
    /// Makes those of a disk that is to be added.
    pub(crate) fn new() -> Self {
        Self {
            any: Atomic::new(false),
        }
    }

    /// Whether requests have to pass [`Self::admit`].
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Decides whether a request may be started; if not, says with what it is refused.
    pub(crate) fn admit<T: Operations>(&self, _rq: &Request<T>) -> BlkResult {
        Ok(())
    }
}
