// SPDX-License-Identifier: GPL-2.0

//! The life of a request.
//!
//! A driver implements [`Operations`]. The block layer calls `queue_rq` with an [`Idle`] request;
//! from there the handle says what may be done with it, and nothing else compiles:
//!
//! ```text
//!                  refuse --> Refused ---> (block layer: queued again, or failed)
//!                 /
//!    queue_rq: Idle --start--> Started --end, requeue, batch--> (block layer)
//!                                | ^
//!                                | +-- expired: after a delay
//!                                | +-- pop: from a list
//!                                |
//!                                +--delay, push, park--> (timer, list, nobody)
//!                                |                             |
//!                                |             Overdue <-------+ remove, claim: on timeout
//!                                |                |
//!                                |                +--end, requeue, complete
//!                                |
//!                                +--complete--> Completing --end, requeue--> (block layer)
//! ```
//!
//! * A request has one owner, and its handle cannot be copied. So there is no reference count, and
//!   no atomic operation per request.
//! * An [`Idle`] request cannot leave the callback that was given it: either it is started, or it
//!   is given back. A refusal holds the request that is refused, so no other can be given back.
//! * Ending cannot fail. A handle that is dropped ends its request with [`BlkStatus::IOERR`].
//! * The data of a disk, and of its hardware queues, is lent by a request while it has not ended.
//!   What an [`Idle`] request lends stays for the whole callback, even when the request ends in it:
//!   the block layer runs the callback in a read section of RCU, or of SRCU if the driver sleeps,
//!   and what is removed meanwhile is dropped only after such a section has passed. Without that,
//!   the disk could go as soon as its last request has ended, since nothing else holds it. So a
//!   driver that is [`Atomic`] must not sleep there, which no type can stop.
//! * Leaking a handle, by `mem::forget` or by keeping it for ever, hangs the removal of the disk.
//!   Leaking a [`GenDisk`] hangs the unloading of the module. Neither corrupts memory.
//!
//! # Examples
//!
//! A disk that swallows what is written and reads as whatever was in the reader's memory:
//!
//! ```
//! use kernel::{
//!     block::{gendisk::GenDiskBuilder, mq::*, BlkStatus, Sectors},
//!     prelude::*,
//!     sync::{atomic, static_lock_class},
//! };
//!
//! struct Null;
//!
//! /// Counts the requests of a disk.
//! struct Served(atomic::Atomic<u32>);
//!
//! #[vtable]
//! impl Operations for Null {
//!     type Context = Atomic;
//!     type TagSetData = ();
//!     type QueueData = Served;
//!     type HwData = ();
//!     type RequestData = ();
//!     type Timer = NoTimer;
//!
//!     fn init_hw_queue(_: &Served, _: &(), _index: u32) -> impl PinInit<(), Error> {
//!         Ok(())
//!     }
//!
//!     fn init_request(_: &()) -> impl PinInit<()> {}
//!
//!     fn queue_rq<'q>(rq: Idle<'q, Self>, _last: bool) -> Result<(), Refused<'q, Self>> {
//!         let served = &rq.queue_data().0;
//!         if !matches!(rq.op(), Op::Read | Op::Write | Op::Flush) {
//!             return Err(rq.refuse(BlkStatus::NOTSUPP));
//!         }
//!         served.add(1, atomic::Relaxed);
//!         rq.start().complete();
//!         Ok(())
//!     }
//!
//!     fn complete(rq: Completing<Self>) {
//!         rq.end(Ok(()));
//!     }
//! }
//!
//! let tags = TagSet::<Null>::new(TagSetOptions::default(), Ok(()))?;
//! let disk = GenDiskBuilder::new(tags, static_lock_class!())
//!     .capacity(Sectors::from_mebibytes(1))
//!     .build(c"rust_null_doc", Ok(Served(atomic::Atomic::new(0))))?
//!     .add()?;
//! // The block layer has looked for partitions.
//! assert!(disk.queue_data().0.load(atomic::Relaxed) > 0);
//! # Ok::<(), Error>(())
//! ```
//!
//! [`BlkStatus::IOERR`]: crate::block::BlkStatus::IOERR
//! [`GenDisk`]: crate::block::gendisk::GenDisk
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

// In the order of reading; rustfmt does not sort across empty lines.

mod operations;

mod tag_set;

mod tag_options;

mod vtable;

mod shared;

mod plug;

mod batch;

mod delay;

mod pending;

mod list;

mod request;

mod hw_queue;

mod queues;

mod disk_data;

mod change;

mod reserves;

mod map;

mod context;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod test_driver;

pub(crate) use self::disk_data::DiskData;
pub use self::{
    batch::Batch,
    context::{
        memalloc_noio,
        Atomic,
        Context,
        Scope,
        Sleepable, //
    },
    delay::DelayLine,
    hw_queue::HwQueue,
    list::RequestList,
    map::{
        online_nodes,
        QueueCounts,
        QueueKind, //
    },
    operations::Operations,
    pending::PendingList,
    plug::PlugList,
    queues::Queues,
    request::{
        Completing,
        Idle,
        NoTimer,
        Op,
        Overdue,
        Refused,
        Request,
        RequestTimer,
        Started,
        TimedOut,
        TimeoutAction,
        Timer, //
    },
    tag_options::TagSetOptions,
    tag_set::TagSet, //
};
