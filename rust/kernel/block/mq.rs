// SPDX-License-Identifier: GPL-2.0

//! The life of a request.
//!
//! A driver implements [`Operations`]. The block layer calls `queue_rq` with an [`IdleRequest`]
//! request; from there the handle says what may be done with it, and nothing else compiles:
//!
//! ```text
//!  queue_rq: IdleRequest --reject--> RejectedRequest --> requeued, or failed
//!                |
//!              start     +-- timer_expired, delay_expired, pop_front
//!                |       |
//!                v       v                            (timer, list,
//!          StartedRequest --delay, push, leave_in_flight--> in flight)
//!             |      |                                       |
//!             |   complete              remove, try_take on timeout
//!             |      |                                       |
//!             |      v                                       v
//!             |   CompletingRequest                   OverdueRequest
//!             |      |                                       |
//!             v      v                                       v
//!            end, requeue, batch                end, requeue, complete
//! ```
//!
//! * A request has one owner, and its handle cannot be copied. So there is no reference count, and
//!   no atomic operation per request.
//! * An [`IdleRequest`] request cannot leave the callback that was given it: either it is started,
//!   or it is given back. A refusal holds the request that is refused, so no other can be given
//!   back.
//! * Ending cannot fail. A handle that is dropped ends its request with [`BlkStatus::IOERR`].
//! * The data of a disk, and of its hardware queues, is lent by a request while it has not ended.
//!   What an [`IdleRequest`] request lends stays for the whole callback, even when the request ends
//!   in it: the block layer runs the callback in a read section of RCU, or of SRCU if the driver
//!   sleeps, and what is removed meanwhile is dropped only after such a section has passed. Without
//!   that, the disk could go as soon as its last request has ended, since nothing else holds it. So
//!   a driver that is [`NonBlocking`] must not sleep there, which no type can stop.
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
//!     type Context = NonBlocking;
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
//!     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
//!         let served = &rq.queue_data().0;
//!         if !matches!(rq.op(), Op::Read | Op::Write | Op::Flush) {
//!             return Err(rq.reject(BlkStatus::NOTSUPP));
//!         }
//!         served.add(1, atomic::Relaxed);
//!         rq.start().complete();
//!         Ok(())
//!     }
//!
//!     fn complete(rq: CompletingRequest<Self>) {
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

mod vtable;

mod tag_set_inner;

mod plug_list;

mod batch;

mod delay_queue;

mod pending_list;

mod request_list;

mod timeout;

mod handle;

mod request;

mod pdu;

mod hw_queue;

mod request_queue;

mod disk_data;

mod queue_update;

mod reserves;

mod queue_map;

mod context;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod test_driver;

pub(crate) use self::disk_data::DiskData;
pub use self::{
    batch::IoCompletionBatch,
    context::{
        memalloc_noio,
        Blocking, //
        Context,
        NonBlocking,
        QueueContext,
    },
    delay_queue::DelayQueue,
    handle::{
        CompletingRequest,
        IdleRequest,
        QueueResult,
        RejectedRequest,
        StartedRequest, //
    },
    hw_queue::HwQueue,
    operations::Operations,
    pdu::{
        NoTimer,
        RequestTimer,
        Timer, //
    },
    pending_list::PendingList,
    plug_list::PlugList,
    queue_map::{
        online_nodes,
        QueueCounts,
        QueueType, //
    },
    request::{
        Op,
        Request, //
    },
    request_list::RequestList,
    request_queue::RequestQueue,
    tag_set::{
        TagSet,
        TagSetOptions, //
    },
    timeout::{
        OverdueRequest,
        TimedOutRequest,
        TimeoutAction, //
    },
};
