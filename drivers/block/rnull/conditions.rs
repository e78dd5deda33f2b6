// SPDX-License-Identifier: GPL-2.0

//! What may happen to the requests of a disk on their way.
//!
//! Few disks have any of it, so the way of a request asks [`Conditions::any`] once, and what is
//! behind it is kept off that way.

mod bad_sectors;

mod good;

pub(crate) use bad_sectors::BadSectors;

use kernel::{
    block::{
        mq::{
            Operations,
            Request, //
        },
        BlkResult,
        Sectors, //
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
    bad_sectors: BadSectors,
}

impl Conditions {
    /// Makes those of a disk that is to be added.
    pub(crate) fn new(bad_sectors: BadSectors) -> Self {
        Self {
            any: Atomic::new(!bad_sectors.is_empty()),
            bad_sectors,
        }
    }

    /// Whether requests have to be taken through the stages below.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Takes note of something that has come while the disk is on.
    pub(crate) fn look_out(&self) {
        self.any.store(true, Relaxed);
    }

    /// Decides whether a request may be started; if not, says with what it is refused.
    pub(crate) fn admit<T: Operations>(&self, _rq: &Request<T>) -> BlkResult {
        Ok(())
    }

    /// Returns how much of a request is to be transferred, and how it then ends at best.
    pub(crate) fn survey<T: Operations>(&self, rq: &Request<T>) -> (Sectors, BlkResult) {
        self.bad_sectors.survey(rq.sector(), rq.sectors())
    }
}
