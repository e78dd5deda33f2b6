// SPDX-License-Identifier: GPL-2.0

//! A disk of zeros that loses every eighth request, to show how a timeout finds it again.
//!
//! Reads of `/dev/rust_timeout` return zeros, writes are dropped. A lost request is queued again
//! after a second, so I/O is slow at times but does not fail.

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
            NoTimer,
            NonBlocking,
            Op,
            Operations,
            QueueResult,
            TagSet,
            TagSetOptions,
            TimedOutRequest,
            TimeoutAction, //
        },
        BlkStatus,
        Sectors, //
    },
    prelude::*,
    static_lock_class,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::Delta, //
};

module! {
    type: RustBlockTimeout,
    name: "rust_block_timeout",
    authors: ["rnull contributors"],
    description: "Rust block driver sample: requests that time out",
    license: "GPL",
}

struct RustBlockTimeout {
    _disk: GenDisk<LossyDisk>,
}

impl kernel::Module for RustBlockTimeout {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let options = TagSetOptions {
            timeout: Some(Delta::from_secs(1)),
            ..TagSetOptions::default()
        };
        let received = Received(Atomic::new(0));
        let disk = GenDiskBuilder::new(TagSet::new(options, Ok(()))?, static_lock_class!())
            .capacity(Sectors::from_mebibytes(16))
            .build(c"rust_timeout", Ok(received))?
            .add()?;
        Ok(Self { _disk: disk })
    }
}

/// The driver's data of the disk: how many requests it has received.
struct Received(Atomic<u32>);

/// The driver.
enum LossyDisk {}

#[vtable]
impl Operations for LossyDisk {
    type Context = NonBlocking;
    type TagSetData = ();
    type QueueData = Received;
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_disk: &Received, _set: &(), _index: u32) -> impl PinInit<(), Error> {
        Ok::<(), Error>(())
    }

    fn init_request(_set: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
        if !matches!(rq.op(), Op::Read | Op::Write | Op::Flush) {
            return Err(rq.reject(BlkStatus::NOTSUPP));
        }
        let count = rq.queue_data().0.fetch_add(1, Relaxed);
        let rq = rq.start();
        if count % 8 == 7 {
            // As if the device had lost it. Nothing owns the request until it times out.
            rq.leave_in_flight();
            return Ok(());
        }
        if let Transfer::FromDisk(mut memory) = rq.transfer() {
            memory.fill(0);
        }
        rq.end(Ok(()));
        Ok(())
    }

    fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        let tag = rq.tag();
        match rq.try_take() {
            Ok((rq, action)) => {
                pr_info!("request with tag {tag} was lost, and is queued again\n");
                rq.requeue();
                action
            }
            // `queue_rq` still owns it, and is about to end it.
            Err(rq) => rq.reset_timer(),
        }
    }
}
