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
    FaultAttrs, //
    Faults,
};

use self::{
    bad_sectors::BadSectors,
    throttle::Throttle, //
};
use crate::config::ValidatedConfig;
use kernel::{
    block::{
        badblocks::BadBlocks,
        mq::{
            IdleRequest,
            Op,
            Operations,
            Request, //
            RequestQueue,
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
        plan: &ValidatedConfig,
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
    pub(crate) fn enable_slow_path(&self) {
        self.any.store(true, Relaxed);
    }

    /// Whether making a hardware queue is to fail.
    pub(crate) fn should_fail_init_hctx(&self) -> bool {
        self.faults.should_fail_init_hctx()
    }

    /// Whether a request is to get lost once it is started.
    pub(crate) fn should_timeout<T: Operations>(&self, rq: &Request<T>) -> bool {
        self.faults.should_timeout(rq)
    }

    /// Whether to have a request queued again; if so, whether the driver does it, or has it done.
    pub(crate) fn should_requeue(&self) -> Option<bool> {
        self.faults.should_requeue()
    }

    /// Decides whether a request may be started; if not, says with what it is refused.
    pub(crate) fn throttle<T: Operations>(&self, rq: &IdleRequest<'_, T>) -> BlkResult {
        match &self.throttle {
            // No data comes with a discard, however long it is.
            Some(throttle) if rq.op() == Op::Discard => {
                throttle.throttle(0, rq.hw_queue().request_queue())
            }
            Some(throttle) => throttle.throttle(rq.bytes(), rq.hw_queue().request_queue()),
            None => Ok(()),
        }
    }

    /// Lets those pass that were not admitted for want of bandwidth.
    pub(crate) fn queue_timer_expired<T: Operations>(&self, queues: RequestQueue<'_, T>) {
        if let Some(throttle) = &self.throttle {
            throttle.queue_timer_expired(queues);
        }
    }

    /// Lets everybody pass that waits, because the disk is to go.
    pub(crate) fn disable(&self) {
        if let Some(throttle) = &self.throttle {
            throttle.disable();
        }
    }

    /// Returns how much of a request is to be transferred, and how it then ends at best.
    pub(crate) fn check_bad_blocks<T: Operations>(&self, rq: &Request<T>) -> (Sectors, BlkResult) {
        self.bad_sectors.check_bad_blocks(rq.sector(), rq.sectors())
    }
}
