// SPDX-License-Identifier: GPL-2.0

//! The life of a request.
//!
//! A driver implements [`Operations`]. The block layer calls `queue_rq` with an [`IdleRequest`].
//! Each state of a request has a handle type, whose methods are the transitions to other states:
//!
//! ```text
//!  queue_rq: IdleRequest --reject--> RejectedRequest --> requeued, or failed
//!                 |    |
//!                 |    +--requeue--> requeued
//!               start
//!                 |        +-- timer_expired, delay_expired, pop_front, take
//!                 v        |                                   (timer, list, table,
//!           StartedRequest --delay, push, insert, leave_in_flight--> in flight)
//!              |      |                                                  |
//!              |   complete                         remove, try_take on timeout
//!              |      |                                                  |
//!              |      v                                                  v
//!              |   CompletingRequest                              OverdueRequest
//!              |      |                                                  |
//!              |      v                                                  v
//!              |   end, requeue                            end, requeue, complete
//!              v
//!         end, requeue, batch
//! ```
//!
//! A driver maps the memory of a request for a device, and unmaps it when the device is done:
//!
//! ```text
//!     IdleRequest --map_and_start--+
//!                                  v
//!  StartedRequest --map--> MappedRequest --unmap--> StartedRequest
//!                                                      |        |
//!                                        complete_remote        +--> end, requeue, batch
//!                                                      |
//!                    on this CPU, or in `complete`     v
//!                                              CompletingRequest --> end, requeue, batch
//! ```
//!
//! * A request has one owner, and its handle cannot be copied. This needs no reference count and no
//!   atomic operation per request.
//! * An [`IdleRequest`] cannot leave the callback that received it: the callback starts, rejects or
//!   requeues the request. A [`RejectedRequest`] contains the rejected request, so a callback
//!   cannot return a different one.
//! * The memory of a [`MappedRequest`] belongs to the device. It is unmapped before the request
//!   ends, and what that needs is kept where the device cannot change it.
//! * Ending a request cannot fail. Dropping a handle ends the request with [`BlkStatus::IOERR`].
//!   Dropping a [`RejectedRequest`] does what returning it would do.
//! * A request that has not ended keeps the data of its disk and of its hardware queue alive. Data
//!   borrowed through an [`IdleRequest`] is valid for the whole callback, even after the request
//!   has ended. The disk can be removed as soon as its last request has ended, but the block layer
//!   runs the callback in an RCU read-side critical section, or SRCU for a [`Blocking`] driver, and
//!   the data of a removed disk is dropped only after a grace period. A [`NonBlocking`] driver must
//!   therefore not sleep in the callback, which the type system cannot check.
//! * A request that a device has is in a [`RequestTable`], which finds it by the identifier that
//!   the device returns. A timeout does not remove it, since the device may still access its
//!   memory: it leaves the table when the device has returned the identifier, or was stopped.
//! * A driver makes requests of its own for a [`PassthroughQueue`], a request queue without a disk.
//!   What is said of a disk holds for that, too. Such a request is a [`Passthrough`], which becomes
//!   an [`IdleRequest`] by `execute`. When the driver has ended it, it is not freed, but is the
//!   task's again, as an [`Executed`]. With a [`DiskAccess`], it can be one of a disk. With the
//!   memory of a user, it does not leave the task whose memory that is, as a [`UserPassthrough`].
//!   One that is executed by `execute_nowait` is freed.
//! * Leaking a handle, by `mem::forget` or by keeping it forever, hangs the removal of the disk.
//!   Leaking a [`GenDisk`] hangs the removal of the module. Neither corrupts memory.
//!
//! # Examples
//!
//! A disk that discards writes, and leaves the memory of reads unchanged:
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
//! // The block layer has read the disk to look for partitions.
//! assert!(disk.queue_data().0.load(atomic::Relaxed) > 0);
//! # Ok::<(), Error>(())
//! ```
//!
//! [`BlkStatus::IOERR`]: crate::block::BlkStatus::IOERR
//! [`GenDisk`]: crate::block::gendisk::GenDisk
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

// In reading order. rustfmt does not sort across empty lines.

mod operations;

mod passthrough_nowait;

mod disk_access;

mod user_passthrough;

mod passthrough;

mod quiesce;

mod tag_set;

mod vtable;

mod tag_set_inner;

mod plug_list;

mod batch;

mod delay_queue;

mod pending_list;

mod request_list;

mod request_table;

mod timeout;

mod mapped_request;

mod handle;

mod request;

mod discard_ranges;

mod pdu;

mod hw_queue;

mod request_queue;

mod quiesce_depth;

mod disk_data;

mod dma_mapping;

mod queue_update;

mod reserves;

mod queue_map;

mod cpu_map;

mod context;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
pub(super) mod test_driver;

pub use self::{
    batch::IoCompletionBatch,
    context::{
        memalloc_noio,
        Blocking, //
        Context,
        NonBlocking,
        QueueContext,
    },
    cpu_map::{
        possible_cpus,
        CpuMap,
        CpuMaps, //
    },
    delay_queue::DelayQueue,
    discard_ranges::DiscardRanges,
    disk_access::{
        DiskAccess,
        DiskHandle,
        IoctlCaller, //
    },
    handle::{
        CompletingRequest,
        EndableRequest,
        IdleRequest,
        QueueResult,
        RejectedRequest,
        StartedRequest, //
    },
    hw_queue::HwQueue,
    mapped_request::MappedRequest,
    operations::Operations,
    passthrough::{
        Executed,
        Passthrough,
        PassthroughOp,
        PassthroughQueue, //
    },
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
    quiesce::Quiesced,
    request::{
        Op,
        Request, //
    },
    request_list::RequestList,
    request_queue::RequestQueue,
    request_table::{
        Completer,
        InFlight,
        RequestTable,
        Submitter,
        VacantEntry, //
    },
    tag_set::{
        TagSet,
        TagSetOptions, //
    },
    timeout::{
        OverdueRequest,
        TimedOutRequest,
        TimeoutAction, //
    },
    user_passthrough::{
        UserExecuted,
        UserPassthrough, //
    },
};
pub(crate) use self::{
    disk_access::DiskGate,
    disk_data::DiskData, //
};
