// SPDX-License-Identifier: GPL-2.0

//! The callbacks that a block driver implements.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    CompletingRequest,
    Context,
    DiskAccess,
    HwQueue,
    IdleRequest,
    IoCompletionBatch,
    IoctlCaller,
    PlugList,
    QueueResult,
    RequestList,
    RequestQueue,
    RequestTimer,
    StartedRequest,
    TimedOutRequest,
    TimeoutAction, //
};
use crate::{
    block::zone::ZoneReporter,
    error::VTABLE_DEFAULT_ERROR,
    prelude::*, //
};

/// The callbacks of a block driver: C's `struct blk_mq_ops`.
///
/// Optional callbacks that are not implemented are not called.
///
/// # Examples
///
/// A driver that ends each request after a millisecond. The [module](super) has an example that
/// creates a disk.
///
/// ```
/// use kernel::{block::mq::*, prelude::*, time::Delta};
///
/// struct Delayed;
///
/// #[vtable]
/// impl Operations for Delayed {
///     type Context = NonBlocking;
///     type TagSetData = ();
///     type QueueData = ();
///     type HwData = ();
///     type RequestData = ();
///     type Timer = Timer;
///
///     fn init_hw_queue(_: &(), _: &(), _index: u32) -> impl PinInit<(), Error> {
///         Ok(())
///     }
///
///     fn init_request(_: &()) -> impl PinInit<()> {}
///
///     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
///         rq.start().delay(Delta::from_millis(1));
///         Ok(())
///     }
///
///     fn timer_expired(rq: StartedRequest<Self>) {
///         rq.end(Ok(()));
///     }
/// }
///
/// let tags = TagSet::<Delayed>::new(TagSetOptions::default(), Ok(()))?;
/// assert_eq!(tags.queue_counts(), QueueCounts::default());
/// # Ok::<(), Error>(())
/// ```
#[vtable]
pub trait Operations: Sized + 'static {
    /// Whether `queue_rq` may sleep: [`Blocking`](super::Blocking) or
    /// [`NonBlocking`](super::NonBlocking).
    type Context: Context;

    /// Driver data of a tag set.
    type TagSetData: Send + Sync + 'static;

    /// Driver data of a disk, or of a [`PassthroughQueue`](super::PassthroughQueue). It is
    /// initialised before the first callback for that disk or queue, and dropped after the last.
    type QueueData: Send + Sync + 'static;

    /// Driver data of a hardware queue of a disk. When the number of queues changes, it is
    /// initialised again for all queues. Old data may be dropped after the new data was
    /// initialised.
    type HwData: Send + Sync + 'static;

    /// Driver data of a request: the PDU in C. It is initialised with the request and lives across
    /// I/Os, so it keeps what an earlier I/O stored there. Its alignment is at most that of C's
    /// `struct request`, and both together fit into a page.
    type RequestData: Send + Sync + 'static;

    /// Whether requests contain a timer: [`Timer`](super::Timer) or [`NoTimer`](super::NoTimer).
    type Timer: RequestTimer;

    /// Initialises the driver data of hardware queue `index` of the disk with the data `queue`.
    ///
    /// May sleep. After an error, the disk is not built, or the number of queues is not increased.
    /// For a queue that existed before a change of the number, this is called a second time after
    /// an error, and after another error the queue keeps its old data.
    ///
    /// # Examples
    ///
    /// A driver whose queues cannot be initialised again:
    ///
    /// ```
    /// use kernel::{
    ///     block::{gendisk::GenDiskBuilder, mq::*},
    ///     prelude::*,
    ///     sync::{atomic, static_lock_class},
    /// };
    ///
    /// struct FailingInit;
    ///
    /// #[vtable]
    /// impl Operations for FailingInit {
    ///     type QueueData = atomic::Atomic<bool>;
    ///     type HwData = u32;
    ///
    ///     fn init_hw_queue(
    ///         failing: &Self::QueueData,
    ///         _: &(),
    ///         index: u32,
    ///     ) -> impl PinInit<u32, Error> {
    ///         if failing.load(atomic::Relaxed) {
    ///             return Err(EIO);
    ///         }
    ///         Ok(index)
    ///     }
    /// #   type Context = Blocking;
    /// #   type TagSetData = ();
    /// #   type RequestData = ();
    /// #   type Timer = NoTimer;
    /// #
    /// #   fn init_request(_: &()) -> impl PinInit<()> {}
    ///     // ...
    ///
    ///     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
    ///         assert_eq!(*rq.hw_queue().data(), rq.hw_queue().index());
    ///         rq.start().end(Ok(()));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let reads = |read| QueueCounts { read, ..QueueCounts::default() };
    /// let options = TagSetOptions { queues: reads(2), ..TagSetOptions::default() };
    /// let tags = TagSet::<FailingInit>::new(options, Ok(()))?;
    /// let disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
    ///     .build(c"rust_doc_broken", Ok(atomic::Atomic::new(false)))?
    ///     .add()?;
    ///
    /// disk.queue_data().store(true, atomic::Relaxed);
    /// // There is at most one queue for each CPU.
    /// if kernel::cpu::nr_cpu_ids() >= 3 {
    ///     assert_eq!(tags.set_queue_counts(reads(3)), Err(ENOMEM));
    ///     assert_eq!(tags.queue_counts(), reads(2));
    /// }
    /// // The remaining queue keeps its data and still works.
    /// tags.set_queue_counts(reads(1))?;
    /// disk.queue_data().store(false, atomic::Relaxed);
    /// tags.set_queue_counts(reads(3))?;
    /// # Ok::<(), Error>(())
    /// ```
    fn init_hw_queue(
        queue: &Self::QueueData,
        set: &Self::TagSetData,
        index: u32,
    ) -> impl PinInit<Self::HwData, Error>;

    /// Initialises the driver data of a request.
    ///
    /// May sleep. Called for every request of the tag set and of the I/O scheduler, and for the
    /// flush request of each hardware queue. The flush request is also allocated at a point where C
    /// cannot handle an error, so this must not fail: an initialisation that can fail belongs in
    /// the data of the tag set, or in the first use.
    fn init_request(set: &Self::TagSetData) -> impl PinInit<Self::RequestData>;

    /// Queues a request.
    ///
    /// `last` is false if more requests follow immediately. A driver with
    /// [`commit_rqs`](Operations::commit_rqs) may then wait for them before it notifies the
    /// hardware.
    ///
    /// The block layer takes ownership of a rejected request. It requeues or fails the request,
    /// depending on the status.
    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, last: bool) -> QueueResult<'q, Self>;

    /// Queues several requests of one disk, which may belong to different hardware queues.
    ///
    /// Requests that stay in the list, or are put back, are passed to
    /// [`queue_rq`](Operations::queue_rq) one by one.
    fn queue_rqs<'q>(_rqs: &mut PlugList<'q, Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Notifies the hardware of requests that were queued with `last` false, when no more follow.
    fn commit_rqs(_hw: HwQueue<'_, Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Ends a request after [`StartedRequest::complete`].
    ///
    /// Runs in softirq context, or in the context of the caller of `complete`. Must not sleep.
    fn complete(_rq: CompletingRequest<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Called with a request when the timer of [`StartedRequest::delay`] expires.
    ///
    /// Runs in hardirq context. Must not sleep.
    fn timer_expired(_rq: StartedRequest<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Called with requests whose delay in a [`DelayQueue`](super::DelayQueue) has expired.
    ///
    /// Runs in hardirq context. Must not sleep.
    fn delay_expired(_requests: RequestList<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Ends finished requests of a polled hardware queue, and returns their number.
    ///
    /// Must not sleep.
    fn poll<'q>(_hw: HwQueue<'q, Self>, _batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Called when the timer of [`RequestQueue::start_timer`] expires.
    ///
    /// Runs in hardirq context. Must not sleep.
    fn queue_timer_expired(_queues: RequestQueue<'_, Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reports the zones of a zoned disk, all that `reporter` asks for, with the data `queue` of
    /// the disk.
    ///
    /// May sleep. It is called before the disk is added, and at any time from then on until the
    /// disk is removed, concurrently with requests and with other reports. See [`ZoneReporter`] for
    /// an example.
    ///
    /// The removal of the disk waits for it, and so for what each report is passed to. That may be
    /// the memory of a user, who can make a page fault take as long as desired: the removal can
    /// take as long, and a task must not remove a disk while it serves such a page fault.
    ///
    /// # Errors
    ///
    /// Any error is returned to the task that asks for the zones. Before the disk is added, it
    /// makes that fail.
    fn report_zones(_queue: &Self::QueueData, _reporter: &mut ZoneReporter<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Handles an ioctl that the block layer does not know, of a task that has the disk or a
    /// partition of it open. See [`DiskAccess`] for an example.
    ///
    /// `arg` is what the task has passed: mostly an address in its memory, for
    /// [`UserPtr::from_addr`](crate::uaccess::UserPtr::from_addr). For a task with a 32-bit ABI,
    /// the block layer has converted it to such an address.
    ///
    /// May sleep. It is called at any time from when the disk is added until it is removed, by any
    /// number of tasks at once.
    ///
    /// The removal of the disk waits for it, as for [`report_zones`](Operations::report_zones), and
    /// can take as long as a page fault on the memory of the user. The callback must not wait for
    /// the removal of the disk, nor drop it: that would wait forever.
    ///
    /// # Errors
    ///
    /// Any error is returned to the task. That for an unknown ioctl is `ENOTTY`. A result that does
    /// not fit into an `int` becomes `EOVERFLOW`.
    fn ioctl(
        _disk: &DiskAccess<'_, Self>,
        _caller: IoctlCaller,
        _cmd: u32,
        _arg: usize,
    ) -> Result<u32> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Handles a request that has not ended within the timeout of the tag set.
    ///
    /// May sleep. It can run while the owner of the request ends it, so it gets a shared view only.
    /// [`TimedOutRequest`] has the ways to take over the request. A driver that cannot take it over
    /// resets its timer.
    fn timeout<'t>(_rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}
