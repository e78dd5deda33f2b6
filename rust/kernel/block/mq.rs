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
//!                                | +-- pop, remove: from a list
//!                                | +-- claim: of a parked request, on timeout
//!                                |
//!                                +--delay, push, park--> (timer, list, nobody)
//!                                |
//!                                +--complete--> Completing --end, requeue--> (block layer)
//! ```
//!
//! * A request has one owner, and its handle cannot be copied. So there is no reference count, and
//!   no atomic operation per request.
//! * An [`Idle`] request cannot leave the callback that was given it: either it is started, or it
//!   is given back. A refusal holds the request that is refused, so no other can be given back.
//! * Ending cannot fail. A handle that is dropped ends its request with [`BlkStatus::IOERR`].
//! * The data of a disk, and of its hardware queues, is lent by a request while it has not ended. What
//!   an [`Idle`] request lends stays for the whole callback, even when the request ends in it: the
//!   block layer runs the callback in a read section of RCU, or of SRCU if the driver sleeps, and
//!   what is removed meanwhile is dropped only after such a section has passed. Without that, the
//!   disk could go as soon as its last request has ended, since nothing else holds it.
//! * Leaking a handle, by `mem::forget` or by keeping it for ever, hangs the removal of the disk.
//!   It never corrupts memory.
//!
//! [`BlkStatus::IOERR`]: crate::block::BlkStatus::IOERR
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

mod batch;
mod context;
mod hw_queue;
mod list;
mod map;
mod operations;
mod plug;
mod request;
mod shared;
mod tag_set;
mod vtable;

pub use self::{
    batch::Batch,
    context::{
        Atomic,
        Context,
        Scope,
        Sleepable, //
    },
    hw_queue::HwQueue,
    list::RequestList,
    map::{
        online_nodes,
        QueueCounts,
        QueueKind, //
    },
    operations::Operations,
    plug::PlugList,
    request::{
        Completing,
        Idle,
        NoTimer,
        Op,
        Refused,
        Request,
        RequestTimer,
        Started,
        TimedOut,
        TimeoutAction,
        Timer, //
    },
    tag_set::{
        TagSet,
        TagSetOptions, //
    },
};
