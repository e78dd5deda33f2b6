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

/// What is to become of a request that timed out: C's `enum blk_eh_timer_return`.
///
/// There are two. [`TimedOutRequest::reset_timer`] asks for more time. The other says that the
/// request has timed out for good, after which C does not ask again; it comes with the request,
/// from [`TimedOutRequest::try_take`] or
/// [`PendingList::remove`](super::PendingList::remove). So a request that still has another
/// owner, or none, never goes without a timer.
///
/// Each answer is sound, whatever has become of the request: C sets its timer, and marks it, before
/// it puts the reference to it.
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

/// A request that took too long.
///
/// Its owner may be ending it at this moment, so nothing that ending changes can be read. It can be
/// taken over if it was left in flight, by [`Self::try_take`], or in a list, by
/// [`PendingList::remove`](super::PendingList::remove).
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
///         // Its owner is working on it.
///         Err(rq) => rq.reset_timer(),
///     }
/// }
/// ```
///
/// # Invariants
///
/// For `'t`, the caller of the timeout handler holds a reference to the request, so that its tag is
/// not used again, its data is not dropped and its disk does not go. When the handler was called,
/// the request was started, and `queue_rq` had returned since.
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

    /// The request.
    pub(super) fn as_ptr(&self) -> *mut bindings::request {
        self.rq.as_ptr().cast()
    }

    /// The private part of the request.
    fn pdu(&self) -> &RequestPdu<T> {
        // SAFETY: By the type invariant, the request is valid.
        let pdu = unsafe { Request::pdu_of(self.rq.as_ptr()) };
        // SAFETY: As above. Nothing has exclusive access to the private part.
        unsafe { &*pdu }
    }

    /// Returns the owner of the request, which may be stale: see [`RequestPdu::owner`].
    pub(super) fn owner(&self) -> u64 {
        self.pdu().owner()
    }

    /// The tag of the request, for messages: the owner may be requeueing it under another.
    pub fn tag(&self) -> u32 {
        // SAFETY: By the type invariant, the request is valid.
        let tag = unsafe { &raw const (*self.as_ptr()).tag };
        // SAFETY: As above. Others may write the field, so it is read once.
        unsafe { tag.read_volatile() as u32 }
    }

    /// What the driver keeps for the request.
    pub fn data(&self) -> &T::RequestData {
        self.pdu().data()
    }

    /// What the driver keeps for the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        self.hw_queue().queue_data()
    }

    /// The hardware queue that the request was given to, which stays for the whole callback.
    pub fn hw_queue(&self) -> HwQueue<'t, T> {
        // SAFETY: By the type invariant, the request keeps its hardware queue until the reference
        // to it is put, and the disk does not go before, nor the data of either.
        unsafe { HwQueue::of_request(self.as_ptr()) }
    }

    /// Takes over a request that was left in flight, with the answer that it does not time out
    /// again.
    ///
    /// # Errors
    ///
    /// Fails if it was not left in flight, or has been taken over.
    pub fn try_take(self) -> Result<(OverdueRequest<T>, TimeoutAction<'t>), Self> {
        if self.pdu().try_take() {
            // SAFETY: `leave_in_flight` gave up a started request, and only one `try_take` gets it.
            Ok(unsafe { self.take_over() })
        } else {
            Err(self)
        }
    }

    /// Makes it the caller's.
    ///
    /// # Safety
    ///
    /// The caller takes over a request that a [`StartedRequest`] has owned.
    pub(super) unsafe fn take_over(self) -> (OverdueRequest<T>, TimeoutAction<'t>) {
        let done = TimeoutAction {
            answer: bindings::blk_eh_timer_return_BLK_EH_DONE,
            _callback: PhantomData,
        };
        // SAFETY: By the safety requirement.
        let rq = unsafe { StartedRequest::from_raw(self.rq) };
        (OverdueRequest(rq), done)
    }

    /// Gives the request the same time again.
    pub fn reset_timer(self) -> TimeoutAction<'t> {
        TimeoutAction {
            answer: bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
            _callback: PhantomData,
        }
    }
}

/// A request that was taken over because it took too long.
///
/// C does not ask about it again. So it can only be ended or queued again: were it left in flight,
/// nothing would ever bring it back. Dropping it ends it with
/// [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR).
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::{Operations, OverdueRequest}, BlkStatus};
///
/// fn once_more<T: Operations>(rq: OverdueRequest<T>, lost: bool) {
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
    /// Ends the request, as [`StartedRequest::end`].
    pub fn end(self, result: BlkResult) {
        self.0.end(result);
    }

    /// Has [`Operations::complete`] called, as [`StartedRequest::complete`].
    pub fn complete(self) {
        self.0.complete();
    }

    /// Has the request queued again, as [`StartedRequest::requeue`]. When it is started then, its
    /// time begins anew.
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
