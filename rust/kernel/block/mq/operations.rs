// SPDX-License-Identifier: GPL-2.0

//! What a driver writes to serve the requests of its disks.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    CompletingRequest,
    Context,
    HwQueue,
    IdleRequest,
    IoCompletionBatch,
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
    error::VTABLE_DEFAULT_ERROR,
    prelude::*, //
};

/// The driver of a kind of disk: C's `struct blk_mq_ops`.
///
/// An optional operation that is not implemented is not called.
///
/// # Examples
///
/// A driver that ends its requests a millisecond late, which the [module](super) shows how to make
/// a disk of:
///
/// ```
/// use kernel::{block::mq::*, prelude::*, time::Delta};
///
/// struct Late;
///
/// #[vtable]
/// impl Operations for Late {
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
/// let tags = TagSet::<Late>::new(TagSetOptions::default(), Ok(()))?;
/// assert_eq!(tags.queue_counts(), QueueCounts::default());
/// # Ok::<(), Error>(())
/// ```
#[vtable]
pub trait Operations: Sized + 'static {
    /// Whether `queue_rq` may sleep: [`Blocking`](super::Blocking) or
    /// [`NonBlocking`](super::NonBlocking).
    type Context: Context;

    /// What the driver keeps per tag set.
    type TagSetData: Send + Sync + 'static;

    /// What the driver keeps per disk. It is made before any callback for that disk, and dropped
    /// after the last.
    type QueueData: Send + Sync + 'static;

    /// What the driver keeps per hardware queue of a disk. It is made anew for all of them whenever
    /// the number of queues changes; old ones may be dropped later than the new ones are made.
    type HwData: Send + Sync + 'static;

    /// What the driver keeps per request. It is made with the request and lives across I/Os, so
    /// what an earlier I/O left there is still there. Its alignment is at most that of C's `struct
    /// request`, with which it fits into a page.
    type RequestData: Send + Sync + 'static;

    /// Whether requests have a timer in them: [`Timer`](super::Timer) or
    /// [`NoTimer`](super::NoTimer).
    type Timer: RequestTimer;

    /// Makes the data of hardware queue `index` of the disk that has the data `queue`.
    ///
    /// May sleep. An error fails the building of the disk, or a change to more queues. A queue that
    /// was there before such a change is asked for twice, and then keeps the data that it had.
    ///
    /// # Examples
    ///
    /// A driver whose queues cannot be made any more:
    ///
    /// ```
    /// use kernel::{
    ///     block::{gendisk::GenDiskBuilder, mq::*},
    ///     prelude::*,
    ///     sync::{atomic, static_lock_class},
    /// };
    ///
    /// struct Broken;
    ///
    /// #[vtable]
    /// impl Operations for Broken {
    ///     type QueueData = atomic::Atomic<bool>;
    ///     type HwData = u32;
    ///
    ///     fn init_hw_queue(
    ///         broken: &Self::QueueData,
    ///         _: &(),
    ///         index: u32,
    ///     ) -> impl PinInit<u32, Error> {
    ///         if broken.load(atomic::Relaxed) {
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
    /// let tags = TagSet::<Broken>::new(options, Ok(()))?;
    /// let disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
    ///     .build(c"rust_doc_broken", Ok(atomic::Atomic::new(false)))?
    ///     .add()?;
    ///
    /// disk.queue_data().store(true, atomic::Relaxed);
    /// assert_eq!(tags.set_queue_counts(reads(3)), Err(ENOMEM));
    /// assert_eq!(tags.queue_counts(), reads(2));
    /// // The one that is left keeps its data, and serves as before.
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

    /// Makes the data of a request.
    ///
    /// May sleep. It runs for every request of the tag set and of the I/O scheduler, and for the
    /// one that each hardware queue has for flushes. That one is also made where nothing can be
    /// undone any more, so this must not fail: what can fail belongs to the data of the tag set, or
    /// to the first use.
    fn init_request(set: &Self::TagSetData) -> impl PinInit<Self::RequestData>;

    /// Serves a request.
    ///
    /// `last` is false if more requests follow at once, in which case a driver with
    /// [`commit_rqs`](Operations::commit_rqs) may wait for them before telling the hardware.
    ///
    /// A request that is refused is owned by the block layer again, which queues it again or fails
    /// it depending on the status.
    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, last: bool) -> QueueResult<'q, Self>;

    /// Serves several requests of one disk, not all of one hardware queue.
    ///
    /// What is left in the list, or put back, goes to [`queue_rq`](Operations::queue_rq) one by
    /// one.
    fn queue_rqs<'q>(_rqs: &mut PlugList<'q, Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Tells the hardware about requests that were queued with `last` false, since no more follow.
    fn commit_rqs(_hw: HwQueue<'_, Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Ends a request after [`StartedRequest::complete`].
    ///
    /// Runs in soft interrupt context, or directly in that of the caller of `complete`. Must not
    /// sleep.
    fn complete(_rq: CompletingRequest<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Goes on with a request after [`StartedRequest::delay`].
    ///
    /// Runs in hard interrupt context. Must not sleep.
    fn timer_expired(_rq: StartedRequest<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Goes on with requests that have waited in a [`DelayQueue`](super::DelayQueue).
    ///
    /// Runs in hard interrupt context. Must not sleep.
    fn delay_expired(_requests: RequestList<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Ends requests of a polled hardware queue that are done, and returns how many.
    ///
    /// Must not sleep.
    fn poll<'q>(_hw: HwQueue<'q, Self>, _batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Goes on after [`RequestQueue::start_timer`].
    ///
    /// Runs in hard interrupt context. Must not sleep.
    fn queue_timer_expired(_queues: RequestQueue<'_, Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Decides about a request that has not ended within the timeout of the tag set.
    ///
    /// May sleep. It can run while the owner of the request ends it, so what it sees is the shared
    /// view only; see [`TimedOutRequest`] for the ways to take the request over. Without that, the
    /// answer is to ask for more time.
    fn timeout<'t>(_rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}
