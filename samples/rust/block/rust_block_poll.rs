// SPDX-License-Identifier: GPL-2.0

//! A disk of zeros with a polled queue, to show how requests are polled for.
//!
//! Reads of `/dev/rust_poll` return zeros, writes are dropped. A request is polled for if its
//! submitter asks for that, for example with `fio --ioengine=io_uring --hipri`.

#![forbid(unsafe_code)]

use kernel::{
    block::{
        bio::Transfer,
        gendisk::{
            GenDisk,
            GenDiskBuilder, //
        },
        mq::{
            HwQueue,
            IdleRequest,
            IoCompletionBatch,
            NoTimer,
            NonBlocking,
            Op,
            Operations,
            PendingList,
            QueueCounts,
            QueueResult,
            QueueType,
            TagSet,
            TagSetOptions,
            TimedOutRequest,
            TimeoutAction, //
        },
        BlkStatus,
        Sectors, //
    },
    new_spinlock,
    prelude::*,
    static_lock_class,
    sync::SpinLock, //
};

module! {
    type: RustBlockPoll,
    name: "rust_block_poll",
    authors: ["rnull contributors"],
    description: "Rust block driver sample: a polled queue",
    license: "GPL",
}

struct RustBlockPoll {
    _disk: GenDisk<PolledDisk>,
}

impl kernel::Module for RustBlockPoll {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let options = TagSetOptions {
            queues: QueueCounts {
                poll: 1,
                ..QueueCounts::default()
            },
            ..TagSetOptions::default()
        };
        let disk = GenDiskBuilder::new(TagSet::new(options, Ok(()))?, static_lock_class!())
            .capacity(Sectors::from_mebibytes(16))
            .build(c"rust_poll", Ok(()))?
            .add()?;
        Ok(Self { _disk: disk })
    }
}

/// The driver's data of a hardware queue: the requests that are done, until a task polls for them.
#[pin_data]
struct Done {
    #[pin]
    requests: SpinLock<PendingList<PolledDisk>>,
}

/// The driver.
enum PolledDisk {}

#[vtable]
impl Operations for PolledDisk {
    type Context = NonBlocking;
    type TagSetData = ();
    type QueueData = ();
    type HwData = Done;
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_disk: &(), _set: &(), _index: u32) -> impl PinInit<Done, Error> {
        try_pin_init!(Done {
            requests <- new_spinlock!(PendingList::new(), "Done::requests"),
        })
    }

    fn init_request(_set: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
        if !matches!(rq.op(), Op::Read | Op::Write | Op::Flush) {
            return Err(rq.reject(BlkStatus::NOTSUPP));
        }
        let hw = rq.hw_queue();
        let rq = rq.start();
        if let Transfer::FromDisk(mut memory) = rq.transfer() {
            memory.fill(0);
        }
        match hw.queue_type() {
            QueueType::Poll => hw.data().requests.lock().push_back(rq),
            _ => rq.end(Ok(())),
        }
        Ok(())
    }

    // Called by the task that polls, again and again until its request has ended.
    fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
        let mut done = hw.data().requests.lock().take();
        let mut count = 0;
        while let Some(rq) = done.pop_front() {
            batch.end(rq, Ok(()));
            count += 1;
        }
        count
    }

    // A task may submit a request and never poll for it.
    fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        let removed = rq.hw_queue().data().requests.lock().remove(rq);
        match removed {
            Ok((rq, action)) => {
                rq.end(Err(BlkStatus::TIMEOUT));
                action
            }
            // Another CPU has polled for it meanwhile, and is ending it.
            Err(rq) => rq.reset_timer(),
        }
    }
}
