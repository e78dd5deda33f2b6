// SPDX-License-Identifier: GPL-2.0

//! Fault injection.

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

/// Whether fault injection is built in.
const BUILT_IN: bool = cfg!(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION);

/// The fault attributes of a new device.
#[derive(Clone, Copy, Default)]
pub(crate) struct FaultAttrs {
    pub(crate) timeout: FaultSettings,
    pub(crate) requeue: FaultSettings,
    pub(crate) init_hctx: FaultSettings,
}

/// Which side requeues a request.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RequeueBy {
    /// The block layer: `queue_rq` rejects the request with `BLK_STS_RESOURCE`.
    BlockLayer,
    /// The driver, by `blk_mq_requeue_request()`.
    Driver,
}

/// The faults of a device. Users can change their attributes at any time.
pub(crate) struct Faults {
    timeout: Fault,
    requeue: Fault,
    init_hctx: Fault,
    /// How many requests were requeued.
    requeued: Atomic<u32>,
}

impl Faults {
    /// Whether a fault can happen at all.
    pub(super) const ANY: bool = BUILT_IN || cfg!(CONFIG_FAIL_IO_TIMEOUT);

    /// Sets up the faults of a new device.
    pub(crate) fn new(fault_attrs: &FaultAttrs) -> Result<Self> {
        Ok(Self {
            timeout: Fault::new(c"timeout_inject", &fault_attrs.timeout)?,
            requeue: Fault::new(c"requeue_inject", &fault_attrs.requeue)?,
            init_hctx: Fault::new(c"init_hctx_fault_inject", &fault_attrs.init_hctx)?,
            requeued: Atomic::new(0),
        })
    }

    /// Adds the directories with the attributes.
    pub(crate) fn add_to(&self, groups: &mut DefaultGroups<'_>) -> Result {
        if !BUILT_IN {
            return Ok(());
        }
        groups.add_fault(&self.timeout)?;
        groups.add_fault(&self.requeue)?;
        groups.add_fault(&self.init_hctx)
    }

    /// Whether to leave a request in flight until it times out. The block layer has a fault for
    /// that, too (`fail_io_timeout`).
    pub(super) fn should_timeout<T: Operations>(&self, rq: &Request<T>) -> bool {
        (BUILT_IN && self.timeout.should_fail()) || rq.should_fake_timeout()
    }

    /// Whether to requeue a request. The block layer and the driver do it in turn.
    pub(super) fn should_requeue(&self) -> Option<RequeueBy> {
        (BUILT_IN && self.requeue.should_fail()).then(|| {
            match self.requeued.fetch_add(1, Relaxed) % 2 {
                0 => RequeueBy::BlockLayer,
                _ => RequeueBy::Driver,
            }
        })
    }

    /// Whether to fail the initialization of a hardware queue.
    pub(super) fn should_fail_init_hctx(&self) -> bool {
        BUILT_IN && self.init_hctx.should_fail()
    }
}
