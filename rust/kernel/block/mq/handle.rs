// SPDX-License-Identifier: GPL-2.0

//! The handles of a request.
//!
//! Each type is a state of the request, each method that takes `self` a transition.

use super::{
    context::Invariant,
    disk_data::DiskData,
    pdu::{
        RequestPdu,
        Timer, //
    },
    HwQueue,
    Operations,
    QueueContext,
    Request, //
};
use crate::{
    bindings,
    block::{
        bio::Transfer,
        status, //
        BlkResult,
        BlkStatus,
    },
    prelude::*,
    time::Delta, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

/// A request that the driver was given, and has not started.
///
/// It is either started, or given back, before the callback `'q` that was given it returns; it can
/// be kept nowhere else. Dropping it ends it with [`BlkStatus::IOERR`].
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::{IdleRequest, Operations, QueueResult}, BlkStatus, Sector};
///
/// fn serve<'q, T: Operations>(
///     rq: IdleRequest<'q, T>,
///     end: Sector,
///     busy: bool,
/// ) -> QueueResult<'q, T> {
///     if busy {
///         // The request comes again.
///         return Err(rq.reject(BlkStatus::RESOURCE));
///     }
///     if rq.sector() + rq.sectors() > end {
///         return Err(rq.reject(BlkStatus::IOERR));
///     }
///     rq.start().end(Ok(()));
///     Ok(())
/// }
/// ```
///
/// # Invariants
///
/// It owns the request, which is not started, and whose data is initialised. `'q` is the callback
/// that runs, inside a read section that `TagSet::reap` waits for.
#[must_use = "dropping a request ends it with an I/O error"]
pub struct IdleRequest<'q, T: Operations> {
    rq: NonNull<Request<T>>,
    /// Invariant in `'q`: a request of one callback is not one of another.
    _callback: Invariant<'q>,
}

impl<'q, T: Operations> IdleRequest<'q, T> {
    /// # Safety
    ///
    /// The type invariant holds, and ownership goes to the result.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement.
            rq: unsafe { NonNull::new_unchecked(Request::cast_from(rq)) },
            _callback: PhantomData,
        }
    }

    /// Gives up ownership.
    #[inline]
    fn into_inner(self) -> NonNull<Request<T>> {
        ManuallyDrop::new(self).rq
    }

    /// A token for what `queue_rq` may do.
    #[inline]
    pub fn context(&self) -> QueueContext<'q, T::Context> {
        // SAFETY: By the type invariant, and because the handle cannot be sent, the caller runs in
        // the callback, which is one that queues requests, so the vtable uses `context::run`.
        unsafe { QueueContext::new() }
    }

    /// The hardware queue that the request was given to, which stays for the whole callback.
    #[inline]
    pub fn hw_queue(&self) -> HwQueue<'q, T> {
        // SAFETY: By the type invariant, the request has a hardware queue, of a disk of this
        // driver. When the request has ended, the disk may be removed; but then what it lent is
        // dropped only after the read section that the callback runs in.
        unsafe { HwQueue::of_request(self.as_raw()) }
    }

    /// What the driver keeps for the disk, which stays for the whole callback.
    #[inline]
    pub fn queue_data(&self) -> &'q T::QueueData {
        // SAFETY: By the type invariant, it owns the request.
        let queue = unsafe { (*self.as_raw()).q };
        // SAFETY: By the type invariant, it is the queue of a disk of this driver. What that lent
        // is dropped only after the read section that the callback runs in.
        unsafe { DiskData::<T>::of_queue(queue) }.data()
    }

    /// Starts the request: from now on it can time out, and it has to be ended.
    #[inline]
    pub fn start(self) -> StartedRequest<T> {
        // SAFETY: By the type invariant, it owns the request, which is not started.
        unsafe { bindings::blk_mq_start_request(self.as_raw()) };
        // SAFETY: By the type invariant, which `into_inner` hands over; it is started now.
        unsafe { StartedRequest::from_raw(self.into_inner()) }
    }

    /// Refuses the request, for `queue_rq` to return.
    ///
    /// With [`BlkStatus::RESOURCE`] the block layer queues it again, at once or after a few
    /// milliseconds, but not while the queue is stopped. With any other status it ends the request.
    /// [`BlkStatus::DEV_RESOURCE`] counts as `RESOURCE`: C would wait until another request of the
    /// hardware queue ends, but does not run the queue when that one ends in a batch.
    #[inline]
    pub fn reject(self, status: BlkStatus) -> RejectedRequest<'q, T> {
        let status = if status.is_retried() {
            BlkStatus::RESOURCE
        } else {
            status
        };
        // INVARIANT: By the type invariant.
        RejectedRequest {
            rq: self.into_inner(),
            status,
            _callback: PhantomData,
        }
    }

    /// Has the request queued again, which a worker does at once.
    #[inline]
    pub fn requeue(self) {
        let rq = ManuallyDrop::new(self).as_raw();
        // SAFETY: By the type invariant, it owned the request, which is given up here.
        unsafe { bindings::blk_requeue(rq) };
    }
}

impl<T: Operations> Deref for IdleRequest<'_, T> {
    type Target = Request<T>;

    #[inline]
    fn deref(&self) -> &Request<T> {
        // SAFETY: By the type invariant, it owns the request.
        unsafe { self.rq.as_ref() }
    }
}

impl<T: Operations> Drop for IdleRequest<'_, T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, it owns the request, which does not exist any more after.
        unsafe { bindings::blk_mq_end_request(self.as_raw(), BlkStatus::IOERR.as_raw()) };
    }
}

/// What [`Operations::queue_rq`] returns: the request was started, or is rejected.
pub type QueueResult<'q, T> = Result<(), RejectedRequest<'q, T>>;

/// A request that the driver refuses, for `queue_rq` to return.
///
/// Dropping it does what the block layer would: it queues the request again, or ends it.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{IdleRequest, Operations, QueueResult};
///
/// fn refuse_all<'q, T: Operations>(rq: IdleRequest<'q, T>) -> QueueResult<'q, T> {
///     Err(rq.reject(kernel::block::BlkStatus::OFFLINE))
/// }
/// ```
///
/// # Invariants
///
/// As for [`IdleRequest`].
#[must_use = "a refusal is returned by `queue_rq`"]
pub struct RejectedRequest<'q, T: Operations> {
    rq: NonNull<Request<T>>,
    status: BlkStatus,
    _callback: Invariant<'q>,
}

impl<T: Operations> RejectedRequest<'_, T> {
    /// Why the request is refused.
    #[inline]
    pub fn status(&self) -> BlkStatus {
        self.status
    }

    /// Gives the request back to the caller of the callback.
    #[inline]
    pub(super) fn into_raw(self) -> (*mut bindings::request, BlkStatus) {
        let this = ManuallyDrop::new(self);
        // SAFETY: By the type invariant.
        (unsafe { this.rq.as_ref() }.as_raw(), this.status)
    }
}

impl<T: Operations> Drop for RejectedRequest<'_, T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        let rq = unsafe { self.rq.as_ref() }.as_raw();
        if self.status.is_retried() {
            // SAFETY: By the type invariant, it owns the request.
            unsafe { bindings::blk_requeue(rq) };
        } else {
            // SAFETY: As above.
            unsafe { bindings::blk_mq_end_request(rq, self.status.as_raw()) };
        }
    }
}

/// A request that the driver has started.
///
/// It can be kept, and sent anywhere. Dropping it ends it with [`BlkStatus::IOERR`].
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::{Op, Operations, StartedRequest}, BlkStatus};
///
/// fn end<T: Operations>(rq: StartedRequest<T>) {
///     let result = match rq.op() {
///         Op::Flush => Ok(()),
///         _ => Err(BlkStatus::NOTSUPP),
///     };
///     rq.end(result);
/// }
/// ```
///
/// # Invariants
///
/// It owns the request, which is started, and in no list, timer or batch.
#[must_use = "dropping a request ends it with an I/O error"]
pub struct StartedRequest<T: Operations> {
    rq: NonNull<Request<T>>,
}

// SAFETY: A request may be ended anywhere, and the driver's data in it is `Send` and `Sync`.
unsafe impl<T: Operations> Send for StartedRequest<T> {}

impl<T: Operations> StartedRequest<T> {
    /// # Safety
    ///
    /// The type invariant holds, and ownership goes to the result.
    #[inline]
    pub(super) unsafe fn from_raw(rq: NonNull<Request<T>>) -> Self {
        // INVARIANT: By the safety requirement.
        Self { rq }
    }

    /// Gives up ownership.
    #[inline]
    pub(super) fn into_inner(self) -> NonNull<Request<T>> {
        ManuallyDrop::new(self).rq
    }

    /// Gives up ownership, for C to take.
    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        // SAFETY: By the type invariant, until C has it.
        unsafe { self.into_inner().as_ref() }.as_raw()
    }

    /// The memory that the request reads into or writes from.
    ///
    /// It is lent by the request, which cannot end before the last use of it.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::{bio::Transfer, mq::{Operations, StartedRequest}};
    ///
    /// fn zeros<T: Operations>(rq: StartedRequest<T>) {
    ///     if let Transfer::FromDisk(mut memory) = rq.transfer() {
    ///         memory.fill(0);
    ///     }
    ///     rq.end(Ok(()));
    /// }
    /// ```
    #[inline]
    pub fn transfer(&self) -> Transfer<'_> {
        // SAFETY: By the type invariant the request is started, and it does not end while borrowed.
        unsafe { Transfer::from_raw(self.as_raw()) }
    }

    /// Ends the request.
    #[inline]
    pub fn end(self, result: BlkResult) {
        // SAFETY: By the type invariant, which `into_raw` hands over.
        unsafe { bindings::blk_mq_end_request(self.into_raw(), status::as_raw(result)) };
    }

    /// Has [`Operations::complete`] called with the request, on the CPU that submitted it or near,
    /// in soft interrupt context if that is another one.
    #[inline]
    pub fn complete(self) {
        const_assert!(T::HAS_COMPLETE);
        // SAFETY: By the type invariant, which `into_raw` hands over. The vtable has `complete`.
        unsafe { bindings::blk_mq_complete_request(self.into_raw()) };
    }

    /// Has the request queued again, which a worker does at once.
    #[inline]
    pub fn requeue(self) {
        // SAFETY: By the type invariant, which `into_raw` hands over.
        unsafe { bindings::blk_requeue(self.into_raw()) };
    }

    /// Lets go of the request until it times out.
    ///
    /// [`TimedOutRequest::try_take`](super::TimedOutRequest::try_take) gets it back.
    #[inline]
    pub fn leave_in_flight(self) {
        const_assert!(T::HAS_TIMEOUT);
        let rq = self.into_inner();
        // SAFETY: By the type invariant, which `into_inner` hands over, it is a request.
        let pdu = unsafe { Request::pdu_of(rq.as_ptr()) };
        // After this, another CPU may own and end the request.
        //
        // SAFETY: By the type invariant the private part is there until the request has ended,
        // hence until the store that gives it up. Nothing is looked at after that.
        unsafe { &*pdu }.leave_in_flight();
    }
}

impl<T: Operations<Timer = Timer>> StartedRequest<T> {
    /// Has [`Operations::timer_expired`] called with the request after `delay`.
    #[inline]
    pub fn delay(self, delay: Delta) {
        const_assert!(T::HAS_TIMER_EXPIRED);
        let rq = self.into_inner();
        // SAFETY: By the type invariant, which `into_inner` hands over, it is a request.
        let pdu = unsafe { Request::pdu_of(rq.as_ptr()) };
        // SAFETY: As above, so this is the private part of one.
        let timer = unsafe { RequestPdu::raw_timer(pdu) };
        // SAFETY: By the type invariant, the timer does not run. The callback is the one in the
        // vtable of `T`, which takes over the ownership that `into_inner` gave up.
        unsafe { Timer::start(timer, delay) };
    }
}

impl<T: Operations> Deref for StartedRequest<T> {
    type Target = Request<T>;

    #[inline]
    fn deref(&self) -> &Request<T> {
        // SAFETY: By the type invariant, it owns the request.
        unsafe { self.rq.as_ref() }
    }
}

impl<T: Operations> Drop for StartedRequest<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, it owns the request, which does not exist any more after.
        unsafe { bindings::blk_mq_end_request(self.as_raw(), BlkStatus::IOERR.as_raw()) };
    }
}

/// A request after [`StartedRequest::complete`](super::StartedRequest::complete), which has only to
/// be ended.
///
/// Dropping it ends it with [`BlkStatus::IOERR`].
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{CompletingRequest, Operations};
///
/// fn complete<T: Operations>(rq: CompletingRequest<T>) {
///     rq.end(Ok(()));
/// }
/// ```
///
/// # Invariants
///
/// It owns the request, which is marked as complete.
#[must_use = "dropping a request ends it with an I/O error"]
pub struct CompletingRequest<T: Operations> {
    rq: NonNull<Request<T>>,
}

// SAFETY: A request may be ended anywhere, and the driver's data in it is `Send` and `Sync`.
unsafe impl<T: Operations> Send for CompletingRequest<T> {}

impl<T: Operations> CompletingRequest<T> {
    /// # Safety
    ///
    /// The type invariant holds, and ownership goes to the result.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement.
            rq: unsafe { NonNull::new_unchecked(Request::cast_from(rq)) },
        }
    }

    /// Gives up ownership, for C to take.
    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        // SAFETY: By the type invariant, until C has it.
        unsafe { ManuallyDrop::new(self).rq.as_ref() }.as_raw()
    }

    /// Ends the request.
    #[inline]
    pub fn end(self, result: BlkResult) {
        // SAFETY: By the type invariant, which `into_raw` hands over.
        unsafe { bindings::blk_mq_end_request(self.into_raw(), status::as_raw(result)) };
    }

    /// Has the request queued again, which a worker does at once.
    #[inline]
    pub fn requeue(self) {
        // SAFETY: By the type invariant, which `into_raw` hands over.
        unsafe { bindings::blk_requeue(self.into_raw()) };
    }
}

impl<T: Operations> Deref for CompletingRequest<T> {
    type Target = Request<T>;

    #[inline]
    fn deref(&self) -> &Request<T> {
        // SAFETY: By the type invariant, it owns the request.
        unsafe { self.rq.as_ref() }
    }
}

impl<T: Operations> Drop for CompletingRequest<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, it owns the request, which does not exist any more after.
        unsafe { bindings::blk_mq_end_request(self.as_raw(), BlkStatus::IOERR.as_raw()) };
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
