// SPDX-License-Identifier: GPL-2.0

//! What may happen to the requests of a disk on their way.
//!
//! Few disks have any of it, so the way of a request asks [`Conditions::any`] once, and what is
//! behind it is kept off that way.

mod faults;

mod throttle;

mod bad_sectors;

mod bucket;

mod good;

pub(crate) use faults::{
    Faults,
    Occasions, //
};

use self::{
    bad_sectors::BadSectors,
    throttle::Throttle, //
};
use crate::config::Plan;
use kernel::{
    block::{
        badblocks::BadBlocks,
        mq::{
            Idle,
            Op,
            Operations,
            Queues,
            Request, //
        },
        BlkResult,
        Sectors, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// What may happen to the requests of a disk.
pub(crate) struct Conditions {
    /// Whether there is anything; it may come while the disk is on.
    any: Atomic<bool>,
    faults: Arc<Faults>,
    throttle: Option<Pin<KBox<Throttle>>>,
    bad_sectors: BadSectors,
}

impl Conditions {
    /// Makes those of a disk that is to be added.
    pub(crate) fn new(
        plan: &Plan,
        faults: Arc<Faults>,
        bad_blocks: Arc<BadBlocks>,
    ) -> Result<Self> {
        let throttle = match plan.settings.mbps {
            0 => None,
            mbps => Some(KBox::pin_init(Throttle::new(mbps), GFP_KERNEL)?),
        };
        let bad_sectors = BadSectors::new(plan, bad_blocks);
        Ok(Self {
            any: Atomic::new(Faults::ANY || throttle.is_some() || !bad_sectors.is_empty()),
            faults,
            throttle,
            bad_sectors,
        })
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

    /// Whether making a hardware queue is to fail.
    pub(crate) fn breaks_queue(&self) -> bool {
        self.faults.breaks_queue()
    }

    /// Whether a request is to get lost once it is started.
    pub(crate) fn loses<T: Operations>(&self, rq: &Request<T>) -> bool {
        self.faults.loses(rq)
    }

    /// Whether to have a request queued again; if so, whether the driver does it, or has it done.
    pub(crate) fn sends_back(&self) -> Option<bool> {
        self.faults.sends_back()
    }

    /// Decides whether a request may be started; if not, says with what it is refused.
    pub(crate) fn admit<T: Operations>(&self, rq: &Idle<'_, T>) -> BlkResult {
        match &self.throttle {
            // No data comes with a discard, however long it is.
            Some(throttle) if rq.op() == Op::Discard => throttle.admit(0, rq.hw_queue().all()),
            Some(throttle) => throttle.admit(rq.bytes(), rq.hw_queue().all()),
            None => Ok(()),
        }
    }

    /// Lets those pass that were not admitted for want of bandwidth.
    pub(crate) fn tick<T: Operations>(&self, queues: Queues<'_, T>) {
        if let Some(throttle) = &self.throttle {
            throttle.tick(queues);
        }
    }

    /// Lets everybody pass that waits, because the disk is to go.
    pub(crate) fn lift(&self) {
        if let Some(throttle) = &self.throttle {
            throttle.lift();
        }
    }

    /// Returns how much of a request is to be transferred, and how it then ends at best.
    pub(crate) fn survey<T: Operations>(&self, rq: &Request<T>) -> (Sectors, BlkResult) {
        self.bad_sectors.survey(rq.sector(), rq.sectors())
    }
}
