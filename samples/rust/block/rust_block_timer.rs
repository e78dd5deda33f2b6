// SPDX-License-Identifier: GPL-2.0

//! A disk of zeros whose requests take a millisecond, to show completion from a timer.
//!
//! Reads of `/dev/rust_timer` return zeros, writes are dropped.

#![forbid(unsafe_code)]

use kernel::{
    block::{
        bio::Transfer,
        gendisk::{
            GenDisk,
            GenDiskBuilder, //
        },
        mq::{
            IdleRequest,
            NonBlocking,
            Op,
            Operations,
            QueueResult,
            StartedRequest,
            TagSet,
            TagSetOptions,
            Timer, //
        },
        BlkStatus,
        Sectors, //
    },
    prelude::*,
    static_lock_class,
    time::Delta, //
};

module! {
    type: RustBlockTimer,
    name: "rust_block_timer",
    authors: ["rnull contributors"],
    description: "Rust block driver sample: completion from a timer",
    license: "GPL",
}

struct RustBlockTimer {
    _disk: GenDisk<SlowDisk>,
}

impl kernel::Module for RustBlockTimer {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let tags = TagSet::new(TagSetOptions::default(), Ok(()))?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(16))
            .build(c"rust_timer", Ok(()))?
            .add()?;
        Ok(Self { _disk: disk })
    }
}

/// How long a request takes.
const LATENCY: Delta = Delta::from_millis(1);

/// The driver.
enum SlowDisk {}

#[vtable]
impl Operations for SlowDisk {
    type Context = NonBlocking;
    type TagSetData = ();
    type QueueData = ();
    type HwData = ();
    type RequestData = ();
    // Each request contains a timer. With `NoTimer`, `delay` below does not compile.
    type Timer = Timer;

    fn init_hw_queue(_disk: &(), _set: &(), _index: u32) -> impl PinInit<(), Error> {
        Ok::<(), Error>(())
    }

    fn init_request(_set: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
        if !matches!(rq.op(), Op::Read | Op::Write | Op::Flush) {
            return Err(rq.reject(BlkStatus::NOTSUPP));
        }
        let rq = rq.start();
        if let Transfer::FromDisk(mut memory) = rq.transfer() {
            memory.fill(0);
        }
        // The timer owns the request until it expires.
        rq.delay(LATENCY);
        Ok(())
    }

    // Called in hard interrupt context, so it must not sleep.
    fn timer_expired(rq: StartedRequest<Self>) {
        rq.end(Ok(()));
    }
}
