// SPDX-License-Identifier: GPL-2.0

//! A request that the driver has started.

use super::super::Operations;
use super::{
    timer::Timer,
    Request, //
    RequestPdu,
};
use crate::{
    bindings,
    block::{
        bio::Transfer,
        status,
        BlkResult,
        BlkStatus, //
    },
    prelude::*,
    time::Delta, //
};
use core::{
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

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
    pub(in super::super) unsafe fn from_raw(rq: NonNull<Request<T>>) -> Self {
        // INVARIANT: By the safety requirement.
        Self { rq }
    }

    /// Gives up ownership.
    #[inline]
    pub(in super::super) fn into_inner(self) -> NonNull<Request<T>> {
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
        let command = unsafe { Request::pdu_of(rq.as_ptr()) };
        // After this, another CPU may own and end the request.
        //
        // SAFETY: By the type invariant the private part is there until the request has ended,
        // hence until the store that gives it up. Nothing is looked at after that.
        unsafe { &*command }.leave_in_flight();
    }
}

impl<T: Operations<Timer = Timer>> StartedRequest<T> {
    /// Has [`Operations::timer_expired`] called with the request after `delay`.
    #[inline]
    pub fn delay(self, delay: Delta) {
        const_assert!(T::HAS_TIMER_EXPIRED);
        let rq = self.into_inner();
        // SAFETY: By the type invariant, which `into_inner` hands over, it is a request.
        let command = unsafe { Request::pdu_of(rq.as_ptr()) };
        // SAFETY: As above, so this is the private part of one.
        let timer = unsafe { RequestPdu::raw_timer(command) };
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
