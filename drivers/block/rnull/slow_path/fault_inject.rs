// SPDX-License-Identifier: GPL-2.0

//! Fault injection.

use kernel::{
    block::mq::{
        Operations,
        Request, //
    },
    configfs::DefaultGroups,
    cpu,
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

    /// Whether to requeue a request.
    pub(super) fn should_requeue(&self) -> bool {
        BUILT_IN && self.requeue.should_fail()
    }

    /// Whether to fail the initialization of a hardware queue.
    pub(super) fn should_fail_init_hctx(&self) -> bool {
        BUILT_IN && self.init_hctx.should_fail()
    }
}

/// Whose turn it is to requeue a request of each hardware queue of a disk: that of the block layer
/// or that of the driver.
pub(super) struct RequeueTurns(KVec<Atomic<u32>>);

impl RequeueTurns {
    /// The block layer begins. A queue that is made again, when their number changes, goes on.
    pub(super) fn new() -> Result<Self> {
        // There is at most one queue for each CPU, and as many polled ones.
        let most = if BUILT_IN { 2 * cpu::nr_cpu_ids() } else { 0 };
        let mut turns = KVec::with_capacity(most as usize, GFP_KERNEL)?;
        for _ in 0..most {
            turns.push(Atomic::new(0), GFP_KERNEL)?;
        }
        Ok(Self(turns))
    }

    /// Takes a turn of the hardware queue with this index.
    pub(super) fn take(&self, index: u32) -> RequeueBy {
        match self.0.get(index as usize) {
            Some(turn) if turn.fetch_add(1, Relaxed) % 2 == 1 => RequeueBy::Driver,
            _ => RequeueBy::BlockLayer,
        }
    }
}
