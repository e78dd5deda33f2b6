// SPDX-License-Identifier: GPL-2.0

//! The request queue of a disk: all of its hardware queues.
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

/// All hardware queues of a disk, with a timer to come back to them.
///
/// A driver that can take no more stops them, refuses the request with
/// [`BlkStatus::RESOURCE`](crate::block::BlkStatus::RESOURCE), and starts them again in
/// [`Operations::queue_timer_expired`]. Without stopping them, the block layer would try again and
/// again.
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
/// For `'q`, `queue` is valid, was made with a [`DiskData<T>`] that is not dropped, and a timer
/// that is started there is cancelled before the queue goes.
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

    /// Runs `f` while the hardware queues stay. If their number is being changed, and no request of
    /// the disk is in use, `f` does not run: C may be replacing them.
    fn with_stable_queues(self, f: impl FnOnce(*mut bindings::request_queue)) {
        // SAFETY: By the type invariant; the data of a disk has the change of its tag set.
        unsafe {
            self.disk_data()
                .queue_update()
                .with_stable_queues(self.queue, f)
        };
    }

    /// What the driver keeps for the disk.
    pub fn data(self) -> &'q T::QueueData {
        self.disk_data().data()
    }

    /// Stops dispatch. Dispatch that is in progress may still finish.
    ///
    /// After the number of queues has changed, they are started.
    ///
    /// A driver that stops the queues has to make sure that they are started: new requests wait
    /// until then, and so does a change of the number of queues. Until then there must be a request
    /// of the disk that has not ended, e.g. one that was refused when the queues were stopped:
    /// without one, to stop and to start them does nothing while their number is being changed, and
    /// requests that come before C gets to it would find them stopped for good.
    ///
    /// When the disk is removed, the queues are started, and this does nothing any more.
    pub fn stop(self) {
        let data = self.disk_data();
        self.with_stable_queues(|queue| {
            if !data.is_stop_disabled() {
                // SAFETY: By the type invariant, and the hardware queues stay meanwhile.
                unsafe { bindings::blk_mq_stop_hw_queues(queue) }
            }
        });
    }

    /// Starts the queues, which nothing stops after that: the removal of the disk waits for the
    /// requests in them.
    pub(crate) fn start_and_disable_stop(self) {
        self.disk_data().disable_stop();
        // To stop them is a read section, which either sees that or is over now.
        rcu::synchronize_rcu();
        self.start();
    }

    /// Starts the queues that are stopped. A worker dispatches their requests.
    pub fn start(self) {
        self.with_stable_queues(|queue| {
            // SAFETY: By the type invariant, and the hardware queues stay meanwhile.
            unsafe { bindings::blk_start_queues(queue) }
        });
    }

    /// Has [`Operations::queue_timer_expired`] called after `delay`, instead of when it was to be
    /// called before.
    ///
    /// The disk has one such timer. When the disk is removed, it can expire until the last request
    /// has ended, and is then cancelled.
    pub fn start_timer(self, delay: Delta) {
        const_assert!(T::HAS_QUEUE_TIMER_EXPIRED);
        // SAFETY: By the type invariant.
        unsafe { self.disk_data().start_timer(self.queue, delay) };
    }
}
