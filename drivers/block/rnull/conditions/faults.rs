// SPDX-License-Identifier: GPL-2.0

//! The faults that happen when the user wants them to.

use kernel::{
    block::mq::{
        Operations,
        Request, //
    },
    configfs::DefaultGroups,
    fault::{
        Fault,
        FaultSettings, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// Whether this driver has faults.
const BUILT_IN: bool = cfg!(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION);

/// When the faults of a new device happen.
#[derive(Clone, Copy, Default)]
pub(crate) struct FaultAttrs {
    pub(crate) timeout: FaultSettings,
    pub(crate) requeue: FaultSettings,
    pub(crate) init_hctx: FaultSettings,
}

/// The faults of a device; the knobs can be turned at any time.
pub(crate) struct Faults {
    timeout: Fault,
    requeue: Fault,
    init_hctx: Fault,
    /// How many requests were queued again.
    sent_back: Atomic<u32>,
}

impl Faults {
    /// Whether anything can happen at all.
    pub(super) const ANY: bool = BUILT_IN || cfg!(CONFIG_FAIL_IO_TIMEOUT);

    /// Makes the faults of a new device.
    pub(crate) fn new(fault_attrs: &FaultAttrs) -> Result<Self> {
        Ok(Self {
            timeout: Fault::new(c"timeout_inject", &fault_attrs.timeout)?,
            requeue: Fault::new(c"requeue_inject", &fault_attrs.requeue)?,
            init_hctx: Fault::new(c"init_hctx_fault_inject", &fault_attrs.init_hctx)?,
            sent_back: Atomic::new(0),
        })
    }

    /// Adds the directories with the knobs.
    pub(crate) fn add_to(&self, groups: &mut DefaultGroups<'_>) -> Result {
        if !BUILT_IN {
            return Ok(());
        }
        groups.add_fault(&self.timeout)?;
        groups.add_fault(&self.requeue)?;
        groups.add_fault(&self.init_hctx)
    }

    /// Whether to lose a request, so that it times out; the block layer has a knob for it, too.
    pub(super) fn should_timeout<T: Operations>(&self, rq: &Request<T>) -> bool {
        (BUILT_IN && self.timeout.should_fail()) || rq.should_fake_timeout()
    }

    /// Whether to have a request queued again, by the block layer (false), the driver in turn.
    pub(super) fn should_requeue(&self) -> Option<bool> {
        (BUILT_IN && self.requeue.should_fail())
            .then(|| self.sent_back.fetch_add(1, Relaxed) % 2 == 1)
    }

    /// Whether to fail to make a hardware queue.
    pub(super) fn should_fail_init_hctx(&self) -> bool {
        BUILT_IN && self.init_hctx.should_fail()
    }
}
