// SPDX-License-Identifier: GPL-2.0

//! The timeout of a request.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    context::Invariant,
    pdu::RequestPdu,
    HwQueue,
    Operations,
    Request,
    StartedRequest, //
};
use crate::{
    bindings,
    block::BlkResult, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};

/// The result of a timeout handler: C's `enum blk_eh_timer_return`.
///
/// There are two. [`TimedOutRequest::reset_timer`] returns the first, which restarts the timeout.
/// The second means that the driver has handled the timeout, and C does not call the handler again.
/// It is returned together with ownership of the request, by [`TimedOutRequest::try_take`] or
/// [`PendingList::remove`](super::PendingList::remove). Therefore, the timeout of a request that
/// still has another owner, or none, is never stopped.
///
/// Both results are sound, even if the request has ended since: C sets its timer, and marks it,
/// before it drops its reference to the request.
#[must_use = "the timeout handler returns it"]
pub struct TimeoutAction<'t> {
    answer: bindings::blk_eh_timer_return,
    _callback: Invariant<'t>,
}

impl TimeoutAction<'_> {
    pub(super) fn as_raw(&self) -> bindings::blk_eh_timer_return {
        self.answer
    }
}

/// A request that timed out.
///
/// Its owner may be ending it at the same time, so fields that change when it ends cannot be read.
/// A request that was left in flight can be taken over by [`Self::try_take`], and a request in a
/// list by [`PendingList::remove`](super::PendingList::remove).
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::{Operations, TimedOutRequest, TimeoutAction}, BlkStatus};
///
/// fn timeout<'t, T: Operations>(rq: TimedOutRequest<'t, T>) -> TimeoutAction<'t> {
///     match rq.try_take() {
///         Ok((rq, done)) => {
///             rq.end(Err(BlkStatus::TIMEOUT));
///             done
///         }
///         // Its owner is still working on it.
///         Err(rq) => rq.reset_timer(),
///     }
/// }
/// ```
///
/// # Invariants
///
/// For `'t`, the caller of the timeout handler holds a reference to the request, so that its tag is
/// not reused, its data is not dropped and its disk is not removed. When the handler was called,
/// the request had been started, and `queue_rq` had returned since.
pub struct TimedOutRequest<'t, T: Operations> {
    rq: NonNull<Request<T>>,
    _callback: Invariant<'t>,
}

impl<'t, T: Operations> TimedOutRequest<'t, T> {
    /// # Safety
    ///
    /// The type invariant holds.
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement.
            rq: unsafe { NonNull::new_unchecked(Request::cast_from(rq)) },
            _callback: PhantomData,
        }
    }

    /// Returns a pointer to C's request.
    pub(super) fn as_ptr(&self) -> *mut bindings::request {
        self.rq.as_ptr().cast()
    }

    /// Returns a pointer to the request, for comparisons.
    pub(super) fn as_request(&self) -> *const Request<T> {
        self.rq.as_ptr()
    }

    /// Returns the PDU of the request.
    fn pdu(&self) -> &RequestPdu<T> {
        // SAFETY: By the type invariant, the request is valid.
        let pdu = unsafe { Request::pdu_of(self.rq.as_ptr()) };
        // SAFETY: As above. Nothing has exclusive access to the PDU.
        unsafe { &*pdu }
    }

    /// Returns the owner of the request, which may be stale: see [`RequestPdu::owner`].
    pub(super) fn owner(&self) -> u64 {
        self.pdu().owner()
    }

    /// Returns the tag of the request, for messages only: it changes if the owner requeues the
    /// request.
    pub fn tag(&self) -> u32 {
        // SAFETY: By the type invariant, the request is valid.
        let tag = unsafe { &raw const (*self.as_ptr()).tag };
        // SAFETY: As above. The field may be written concurrently, so it is read once.
        unsafe { tag.read_volatile() as u32 }
    }

    /// Returns the driver data of the request.
    pub fn data(&self) -> &T::RequestData {
        self.pdu().data()
    }

    /// Returns the driver data of the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        self.hw_queue().queue_data()
    }

    /// Returns the hardware queue of the request, which is valid for the whole callback.
    pub fn hw_queue(&self) -> HwQueue<'t, T> {
        // SAFETY: By the type invariant, the request has its hardware queue until the reference to
        // it is dropped. Before that, the disk is not removed, and the data of neither is dropped.
        unsafe { HwQueue::of_request(self.as_ptr()) }
    }

    /// Takes over a request that was left in flight. The second value is what
    /// [`Operations::timeout`] must return.
    ///
    /// # Errors
    ///
    /// Returns the request if it was not left in flight, or was already taken over.
    pub fn try_take(self) -> Result<(OverdueRequest<T>, TimeoutAction<'t>), Self> {
        if self.pdu().try_take() {
            // SAFETY: `leave_in_flight` gave up a started request, and only one `try_take` gets it.
            Ok(unsafe { self.take_over() })
        } else {
            Err(self)
        }
    }

    /// Passes ownership of the request to the caller.
    ///
    /// # Safety
    ///
    /// The caller takes ownership of a request that a [`StartedRequest`] has owned.
    pub(super) unsafe fn take_over(self) -> (OverdueRequest<T>, TimeoutAction<'t>) {
        let done = TimeoutAction {
            answer: bindings::blk_eh_timer_return_BLK_EH_DONE,
            _callback: PhantomData,
        };
        // SAFETY: By the safety requirement.
        let rq = unsafe { StartedRequest::from_raw(self.rq) };
        (OverdueRequest(rq), done)
    }

    /// Restarts the timeout of the request.
    pub fn reset_timer(self) -> TimeoutAction<'t> {
        TimeoutAction {
            answer: bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
            _callback: PhantomData,
        }
    }
}

/// A request that was taken over after it timed out.
///
/// It can be completed, ended or requeued, but not left in flight: C does not call the timeout
/// handler for it again, so nothing could take it over. Dropping it ends the request with
/// [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR).
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::{Operations, OverdueRequest}, BlkStatus};
///
/// fn retry_or_fail<T: Operations>(rq: OverdueRequest<T>, lost: bool) {
///     if lost {
///         rq.requeue();
///     } else {
///         rq.end(Err(BlkStatus::TIMEOUT));
///     }
/// }
/// ```
#[must_use = "dropping a request ends it with an I/O error"]
pub struct OverdueRequest<T: Operations>(StartedRequest<T>);

impl<T: Operations> OverdueRequest<T> {
    /// Ends the request, like [`StartedRequest::end`].
    pub fn end(self, result: BlkResult) {
        self.0.end(result);
    }

    /// Completes the request, like [`StartedRequest::complete`].
    pub fn complete(self) {
        self.0.complete();
    }

    /// Requeues the request, like [`StartedRequest::requeue`]. Starting it again restarts its
    /// timeout.
    pub fn requeue(self) {
        self.0.requeue();
    }
}

impl<T: Operations> Deref for OverdueRequest<T> {
    type Target = Request<T>;

    fn deref(&self) -> &Request<T> {
        &self.0
    }
}
