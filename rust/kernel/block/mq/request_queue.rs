// SPDX-License-Identifier: GPL-2.0

//! The request queue of a disk.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    disk_data::DiskData,
    Operations, //
};
use crate::{
    bindings,
    prelude::*,
    sync::rcu,
    time::Delta, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// The request queue of a disk, or a [`PassthroughQueue`](super::PassthroughQueue), with a timer:
/// C's `struct request_queue`.
///
/// A driver that cannot accept more requests stops the hardware queues, rejects the request with
/// [`BlkStatus::RESOURCE`](crate::block::BlkStatus::RESOURCE), and starts the hardware queues again
/// in [`Operations::queue_timer_expired`]. If they were not stopped, the block layer would dispatch
/// the request again and again.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::{mq::{IdleRequest, Operations, RequestQueue, QueueResult}, BlkStatus},
///     time::Delta,
/// };
///
/// fn queue_rq<'q, T: Operations>(rq: IdleRequest<'q, T>, busy: bool) -> QueueResult<'q, T> {
///     if busy {
///         let queues = rq.hw_queue().request_queue();
///         queues.stop();
///         queues.start_timer(Delta::from_millis(1));
///         return Err(rq.reject(BlkStatus::RESOURCE));
///     }
///     rq.start().end(Ok(()));
///     Ok(())
/// }
///
/// fn queue_timer_expired<T: Operations>(queues: RequestQueue<'_, T>) {
///     queues.start();
/// }
/// ```
///
/// # Invariants
///
/// For `'q`, `queue` is valid, and was allocated with a `DiskData<T>` that is not dropped. If the
/// timer of that is started, it is cancelled before the queue is freed.
pub struct RequestQueue<'q, T: Operations> {
    queue: NonNull<bindings::request_queue>,
    _data: PhantomData<&'q T::QueueData>,
}

impl<T: Operations> Clone for RequestQueue<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Operations> Copy for RequestQueue<'_, T> {}

impl<'q, T: Operations> RequestQueue<'q, T> {
    /// # Safety
    ///
    /// The type invariant holds for `queue`.
    #[inline]
    pub(crate) unsafe fn from_raw(queue: NonNull<bindings::request_queue>) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            queue,
            _data: PhantomData,
        }
    }

    fn disk_data(self) -> &'q DiskData<T> {
        // SAFETY: By the type invariant.
        unsafe { DiskData::of_queue(self.queue.as_ptr()) }
    }

    /// Calls `f` while the hardware queues cannot be replaced. Does nothing while C may be
    /// replacing them, which is the case if their number is being changed and the disk is not in
    /// use.
    fn with_stable_queues(self, f: impl FnOnce(*mut bindings::request_queue)) {
        // SAFETY: By the type invariant. The data of a disk has the `QueueUpdate` of its tag set.
        unsafe {
            self.disk_data()
                .queue_update()
                .with_stable_queues(self.queue, f)
        };
    }

    /// Returns the driver data of the disk.
    pub fn data(self) -> &'q T::QueueData {
        self.disk_data().data()
    }

    /// Stops dispatch. Dispatch that is in progress may still finish.
    ///
    /// A change of the number of hardware queues starts them.
    ///
    /// A driver that stops the hardware queues must start them later, because new requests and a
    /// change of the number of queues wait for that. In between, the disk must have a request that
    /// has not ended, for instance the request that was rejected when the queues were stopped.
    /// Without such a request, `stop` and [`start`](Self::start) have no effect while the number of
    /// queues is being changed, and requests that arrive before C changes the queues could find
    /// them stopped forever.
    ///
    /// When the disk is removed, the hardware queues are started, and this function has no effect
    /// from then on.
    pub fn stop(self) {
        let data = self.disk_data();
        self.with_stable_queues(|queue| {
            if !data.is_stop_disabled() {
                // SAFETY: By the type invariant, and the hardware queues are not replaced during
                // this call.
                unsafe { bindings::blk_mq_stop_hw_queues(queue) }
            }
        });
    }

    /// Starts the hardware queues, and disables [`Self::stop`], because the removal of the disk
    /// waits for the requests in them.
    pub(crate) fn start_and_disable_stop(self) {
        self.disk_data().disable_stop();
        // `stop` runs in a read-side critical section, which either sees the flag or has ended
        // after this. The same is true for a request that is requeued with a delay.
        rcu::synchronize_rcu();
        self.start();
        // SAFETY: By the type invariant.
        unsafe { bindings::blk_mq_kick_requeue_list(self.queue.as_ptr()) };
    }

    /// Starts the hardware queues that are stopped. A worker dispatches their requests.
    pub fn start(self) {
        self.with_stable_queues(|queue| {
            // SAFETY: By the type invariant, and the hardware queues are not replaced during this
            // call.
            unsafe { bindings::blk_start_queues(queue) }
        });
    }

    /// Starts or restarts the timer. [`Operations::queue_timer_expired`] is called after `delay`.
    ///
    /// The disk has one such timer. While the disk is being removed, the timer can expire until the
    /// last request has ended, and is then cancelled.
    pub fn start_timer(self, delay: Delta) {
        const_assert!(T::HAS_QUEUE_TIMER_EXPIRED);
        // SAFETY: By the type invariant.
        unsafe { self.disk_data().start_timer(self.queue, delay) };
    }
}
