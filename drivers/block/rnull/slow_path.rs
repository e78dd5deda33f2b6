// SPDX-License-Identifier: GPL-2.0

//! The stages of a request that only some disks have.
//!
//! These are throttling, fault injection and bad blocks. So the I/O path checks a single flag,
//! [`SlowPath::is_enabled`], and the code for them stays out of the fast path. The requests of a
//! zoned disk take the slow path, too.

mod fault_inject;

mod throttle;

mod badblocks;

mod token_bucket;

mod partial_io;

pub(crate) use fault_inject::{
    FaultAttrs,
    Faults,
    RequeueBy, //
};

use self::{
    badblocks::BadBlockCheck,
    fault_inject::RequeueTurns,
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
        Sector,
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

/// The stages that only some disks have.
pub(crate) struct SlowPath {
    /// Whether any stage is in use. Bad blocks may be added while the disk is on.
    enabled: Atomic<bool>,
    faults: Arc<Faults>,
    requeue_turns: RequeueTurns,
    throttle: Option<Pin<KBox<Throttle>>>,
    /// Whether there may be bad blocks.
    bad_blocks: Atomic<bool>,
    bad_block_check: BadBlockCheck,
}

impl SlowPath {
    /// Sets up the stages of a new disk.
    pub(crate) fn new(
        plan: &ValidatedConfig,
        faults: Arc<Faults>,
        bad_blocks: Arc<BadBlocks>,
    ) -> Result<Self> {
        let throttle = match plan.settings.mbps {
            0 => None,
            mbps => Some(KBox::pin_init(Throttle::new(mbps), GFP_KERNEL)?),
        };
        let bad_block_check = BadBlockCheck::new(plan, bad_blocks);
        Ok(Self {
            enabled: Atomic::new(
                Faults::ANY
                    || throttle.is_some()
                    || !bad_block_check.is_empty()
                    || plan.zones.is_some(),
            ),
            faults,
            requeue_turns: RequeueTurns::new()?,
            throttle,
            bad_blocks: Atomic::new(!bad_block_check.is_empty()),
            bad_block_check,
        })
    }

    /// Whether requests have to pass the stages below.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Relaxed)
    }

    /// Makes requests pass the stages, after bad blocks were added.
    pub(crate) fn enable(&self) {
        self.bad_blocks.store(true, Relaxed);
        self.enabled.store(true, Relaxed);
    }

    /// Whether the initialization of a hardware queue is to fail.
    pub(crate) fn should_fail_init_hctx(&self) -> bool {
        self.faults.should_fail_init_hctx()
    }

    /// Whether a request is to be left in flight until it times out.
    pub(crate) fn should_timeout<T: Operations>(&self, rq: &Request<T>) -> bool {
        self.faults.should_timeout(rq)
    }

    /// Whether a request of the hardware queue with this index is to be requeued, and by whom.
    pub(crate) fn should_requeue(&self, index: u32) -> Option<RequeueBy> {
        let requeue = self.faults.should_requeue();
        requeue.then(|| self.requeue_turns.take(index))
    }

    /// Takes the bandwidth that a request needs, or returns the status to reject it with.
    pub(crate) fn throttle<T: Operations>(&self, rq: &IdleRequest<'_, T>) -> BlkResult {
        match &self.throttle {
            // A discard transfers no data, however long it is.
            Some(throttle) if rq.op() == Op::Discard => {
                throttle.take(0, rq.hw_queue().request_queue())
            }
            Some(throttle) => throttle.take(rq.bytes(), rq.hw_queue().request_queue()),
            None => Ok(()),
        }
    }

    /// Refills the bandwidth, and restarts the queues.
    pub(crate) fn refill_throttle<T: Operations>(&self, queues: RequestQueue<'_, T>) {
        if let Some(throttle) = &self.throttle {
            throttle.refill(queues);
        }
    }

    /// Lifts the limit on bandwidth, before the disk is removed.
    pub(crate) fn disable_throttle(&self) {
        if let Some(throttle) = &self.throttle {
            throttle.disable();
        }
    }

    /// Returns how many sectors of a request to transfer, and the status to end it with if that
    /// succeeds.
    #[inline]
    pub(crate) fn check_bad_blocks<T: Operations>(&self, rq: &Request<T>) -> (Sectors, BlkResult) {
        self.check_range(rq.sector(), rq.sectors())
    }

    /// Returns how many of the `len` sectors from `at` on to transfer, and the status of the I/O if
    /// that succeeds.
    #[inline]
    pub(crate) fn check_range(&self, at: Sector, len: Sectors) -> (Sectors, BlkResult) {
        if !self.bad_blocks.load(Relaxed) {
            return (len, Ok(()));
        }
        self.bad_block_check.check_bad_blocks(at, len)
    }
}
