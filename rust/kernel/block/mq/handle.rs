// SPDX-License-Identifier: GPL-2.0

//! The handles to a request.
//!
//! Each type is a state of the request, and each method that takes `self` is a transition.

use super::{
    context::Invariant,
    discard_ranges::DiscardRanges,
    disk_data::DiskData,
    pdu::{
        RequestPdu,
        Timer, //
    },
    HwQueue,
    Op,
    Operations,
    QueueContext,
    Request, //
};
use crate::{
    bindings,
    block::{
        bio::Transfer,
        status,
        BlkResult,
        BlkStatus,
        Sector, //
    },
    prelude::*,
    sync::rcu,
    time::{
        Delta,
        NSEC_PER_MSEC, //
    },
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

/// Requeues a request that is to be dispatched after `delay`.
///
/// # Safety
///
/// The caller passes ownership of the request, which is one of a queue of `T`.
#[cold]
unsafe fn requeue_after<T: Operations>(rq: *mut bindings::request, delay: Delta) {
    // SAFETY: By the safety requirement.
    let queue = unsafe { (*rq).q };
    // When the removal of the disk begins, it kicks the list, and waits for this section first.
    let _section = rcu::read_lock();
    // SAFETY: By the safety requirement. The data is not dropped before the request has ended.
    let is_removed = unsafe { DiskData::<T>::of_queue(queue) }.is_stop_disabled();
    let milliseconds = match delay.as_nanos() {
        nanoseconds @ 1.. if !is_removed => (nanoseconds - 1) / NSEC_PER_MSEC + 1,
        _ => 0,
    };
    // At most `i32::MAX`.
    let milliseconds = milliseconds.min(i64::from(i32::MAX)) as u32;
    // SAFETY: By the safety requirement.
    unsafe { bindings::blk_requeue_after(rq, milliseconds) };
}

/// A request that the driver received and has not started.
///
/// It is started, rejected or requeued before the callback `'q` that received it returns. It cannot
/// be stored. Dropping it ends the request with [`BlkStatus::IOERR`].
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
///         // The block layer dispatches the request again.
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
/// It owns the request, which is not started, and whose data is initialised. `'q` is the running
/// callback, which is in a read-side critical section that `TagSet::reap` waits for.
#[must_use = "dropping a request ends it with an I/O error"]
pub struct IdleRequest<'q, T: Operations> {
    rq: NonNull<Request<T>>,
    /// Invariant in `'q`, so that requests of different callbacks have different types.
    _callback: Invariant<'q>,
}

impl<'q, T: Operations> IdleRequest<'q, T> {
    /// # Safety
    ///
    /// The type invariant holds, and the result takes ownership of the request.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement.
            rq: unsafe { NonNull::new_unchecked(Request::cast_from(rq)) },
            _callback: PhantomData,
        }
    }

    /// Gives up ownership of the request.
    #[inline]
    fn into_inner(self) -> NonNull<Request<T>> {
        ManuallyDrop::new(self).rq
    }

    /// Returns a token for the context of the callback.
    #[inline]
    pub fn context(&self) -> QueueContext<'q, T::Context> {
        // SAFETY: By the type invariant, and because the handle cannot be sent, the caller runs in
        // the callback. That callback queues requests, so the vtable calls it through
        // `context::run`.
        unsafe { QueueContext::new() }
    }

    /// Returns the hardware queue of the request, which is valid for the whole callback.
    #[inline]
    pub fn hw_queue(&self) -> HwQueue<'q, T> {
        // SAFETY: By the type invariant, the request has a hardware queue, of a disk of this
        // driver. The disk may be removed when the request has ended, but its data is dropped only
        // after the read-side critical section that the callback runs in.
        unsafe { HwQueue::of_request(self.as_raw()) }
    }

    /// Returns the driver data of the disk, which is valid for the whole callback.
    #[inline]
    pub fn queue_data(&self) -> &'q T::QueueData {
        // SAFETY: By the type invariant, `self` owns the request.
        let queue = unsafe { (*self.as_raw()).q };
        // SAFETY: By the type invariant, it is the queue of a disk of this driver, whose data is
        // dropped only after the read-side critical section that the callback runs in.
        unsafe { DiskData::<T>::of_queue(queue) }.data()
    }

    /// Returns the ranges of sectors of a discard. Another operation has none.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::{mq::{IdleRequest, Op, Operations}, Sectors};
    ///
    /// /// Returns the length of the longest range of a discard.
    /// fn longest<T: Operations>(rq: &IdleRequest<'_, T>) -> Option<Sectors> {
    ///     match rq.op() {
    ///         Op::Discard => rq.discard_ranges().map(|(_, len)| len).max(),
    ///         _ => None,
    ///     }
    /// }
    /// ```
    #[inline]
    pub fn discard_ranges(&self) -> DiscardRanges<'_> {
        let bio = match self.op() {
            // SAFETY: By the type invariant, `self` owns the request.
            Op::Discard => unsafe { (*self.as_raw()).bio },
            _ => core::ptr::null_mut(),
        };
        // SAFETY: By the type invariant, the bios are those of a request that does not end while
        // it is borrowed. Nothing changes them before.
        unsafe { DiscardRanges::from_raw(bio) }
    }

    /// Starts the request. From now on it can time out, and it must be ended.
    #[inline]
    pub fn start(self) -> StartedRequest<T> {
        // SAFETY: By the type invariant, `self` owns the request, which is not started.
        unsafe { bindings::blk_mq_start_request(self.as_raw()) };
        // SAFETY: By the type invariant, `into_inner` passes on the ownership, and the request is
        // started now.
        unsafe { StartedRequest::from_raw(self.into_inner()) }
    }

    /// Rejects the request. The callback returns the result.
    ///
    /// With [`BlkStatus::RESOURCE`] the block layer requeues the request and dispatches it again,
    /// immediately or after a few milliseconds, but not while the queue is stopped. With any other
    /// status it ends the request. [`BlkStatus::DEV_RESOURCE`] is treated as `RESOURCE`: C would
    /// wait until another request of the hardware queue ends, but does not run the queue when that
    /// request ends in a batch.
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

    /// Puts the request on the requeue list and kicks the list.
    #[inline]
    pub fn requeue(self) {
        let rq = ManuallyDrop::new(self).as_raw();
        // SAFETY: By the type invariant, `self` owned the request, which is given up here.
        unsafe { bindings::blk_requeue(rq) };
    }
}

impl<T: Operations> Deref for IdleRequest<'_, T> {
    type Target = Request<T>;

    #[inline]
    fn deref(&self) -> &Request<T> {
        // SAFETY: By the type invariant, `self` owns the request.
        unsafe { self.rq.as_ref() }
    }
}

impl<T: Operations> Drop for IdleRequest<'_, T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, `self` owns the request, which is not used after this.
        unsafe { bindings::blk_mq_end_request(self.as_raw(), BlkStatus::IOERR.as_raw()) };
    }
}

/// The result of [`Operations::queue_rq`]: the request was started, or it is rejected.
pub type QueueResult<'q, T> = Result<(), RejectedRequest<'q, T>>;

/// A request that the driver rejects, to be returned by `queue_rq`.
///
/// Dropping it does what the block layer would do: it requeues the request, or ends it.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{IdleRequest, Operations, QueueResult};
///
/// fn reject_all<'q, T: Operations>(rq: IdleRequest<'q, T>) -> QueueResult<'q, T> {
///     Err(rq.reject(kernel::block::BlkStatus::OFFLINE))
/// }
/// ```
///
/// # Invariants
///
/// As for [`IdleRequest`].
#[must_use = "a rejected request must be returned by `queue_rq`"]
pub struct RejectedRequest<'q, T: Operations> {
    rq: NonNull<Request<T>>,
    status: BlkStatus,
    _callback: Invariant<'q>,
}

impl<T: Operations> RejectedRequest<'_, T> {
    /// Returns the status that the request is rejected with.
    #[inline]
    pub fn status(&self) -> BlkStatus {
        self.status
    }

    /// Returns ownership of the request to the caller of the callback.
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
            // SAFETY: By the type invariant, `self` owns the request.
            unsafe { bindings::blk_requeue(rq) };
        } else {
            // SAFETY: As above.
            unsafe { bindings::blk_mq_end_request(rq, self.status.as_raw()) };
        }
    }
}

mod private {
    /// The handles that own a request which can end.
    pub trait Sealed {}
}

use private::Sealed;

/// A handle to a request that can be ended: [`StartedRequest`] or [`CompletingRequest`].
///
/// # Examples
///
/// ```
/// use kernel::block::mq::EndableRequest;
///
/// fn succeed(rq: impl EndableRequest) {
///     rq.end(Ok(()));
/// }
/// ```
pub trait EndableRequest: Sealed + Deref<Target = Request<Self::Driver>> + Sized {
    /// The driver of the request.
    type Driver: Operations;

    /// Ends the request.
    fn end(self, result: BlkResult);

    /// Passes ownership of the request to C.
    #[doc(hidden)]
    fn into_raw(self) -> *mut bindings::request;
}

/// A request that the driver has started.
///
/// It can be stored, and sent to other threads. Dropping it ends the request with
/// [`BlkStatus::IOERR`].
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
/// It owns the request, which is started, and which is in no list, timer or batch.
#[must_use = "dropping a request ends it with an I/O error"]
pub struct StartedRequest<T: Operations> {
    rq: NonNull<Request<T>>,
}

// SAFETY: A request may be ended by any thread, and the driver's data in it is `Send` and `Sync`.
unsafe impl<T: Operations> Send for StartedRequest<T> {}

impl<T: Operations> StartedRequest<T> {
    /// # Safety
    ///
    /// The type invariant holds, and the result takes ownership of the request.
    #[inline]
    pub(super) unsafe fn from_raw(rq: NonNull<Request<T>>) -> Self {
        // INVARIANT: By the safety requirement.
        Self { rq }
    }

    /// Gives up ownership of the request.
    #[inline]
    pub(super) fn into_inner(self) -> NonNull<Request<T>> {
        ManuallyDrop::new(self).rq
    }

    /// Passes ownership of the request to C.
    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        // SAFETY: By the type invariant, as C does not have the request yet.
        unsafe { self.into_inner().as_ref() }.as_raw()
    }

    /// Returns the memory that the request reads into or writes from.
    ///
    /// The result borrows from the request, which therefore cannot end before its last use.
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
        // SAFETY: By the type invariant the request is started, and it does not end while it is
        // borrowed.
        unsafe { Transfer::from_raw(self.as_raw()) }
    }

    /// Sets the position that a zone append has written to, which [`Request::sector`] returns from
    /// now on. When the request has ended, its submitter gets it.
    ///
    /// Before, the position is any of the zone that is to be written to.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request is no zone append, or if its sectors, from `at` on, would not be
    /// within its zone. A last zone that is shorter counts as a whole one.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::{mq::{Op, Operations, StartedRequest}, BlkStatus, Sector};
    ///
    /// /// Serves a zone append, with the write pointer of its zone.
    /// fn append<T: Operations>(mut rq: StartedRequest<T>, write_pointer: &mut Sector) {
    ///     if rq.op() != Op::ZoneAppend || rq.set_append_sector(*write_pointer).is_err() {
    ///         return rq.end(Err(BlkStatus::IOERR));
    ///     }
    ///     // The data is written here.
    ///     *write_pointer += rq.sectors();
    ///     rq.end(Ok(()));
    /// }
    /// ```
    #[inline]
    pub fn set_append_sector(&mut self, at: Sector) -> Result {
        // SAFETY: By the type invariant, `self` owns the request.
        let queue = unsafe { (*self.as_raw()).q };
        // SAFETY: The queue of a request is valid. Its limits do not change while it has a request.
        let zone_size = u64::from(unsafe { (*queue).limits.chunk_sectors });
        // The size is a power of two: the block layer fails an append to a disk without zones. If a
        // position is in the same zone as the present one, they differ in lower bits only.
        let last = at.0.wrapping_add(self.sectors().0).wrapping_sub(1);
        let (first, last) = (at.0 ^ self.sector().0, last ^ self.sector().0);
        if self.op() != Op::ZoneAppend || first | last >= zone_size {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant, `self` owns the request, and is borrowed exclusively.
        unsafe { (*self.as_raw()).__sector = at.0 };
        Ok(())
    }

    /// Ends the request.
    #[inline]
    pub fn end(self, result: BlkResult) {
        // SAFETY: By the type invariant, `into_raw` passes on the ownership.
        unsafe { bindings::blk_mq_end_request(self.into_raw(), status::as_raw(result)) };
    }

    /// Completes the request: C calls [`Operations::complete`] with it, directly or in softirq
    /// context, on the CPU that submitted the request or on one that shares a cache with that CPU.
    #[inline]
    pub fn complete(self) {
        const_assert!(T::HAS_COMPLETE);
        // SAFETY: By the type invariant, `into_raw` passes on the ownership. The vtable has
        // `complete`.
        unsafe { bindings::blk_mq_complete_request(self.into_raw()) };
    }

    /// Completes the request, and returns it if this CPU is to end it. Otherwise C calls
    /// [`Operations::complete`] with it on another CPU, or in softirq context.
    ///
    /// This costs less than [`Self::complete`], which calls that function through C in either case,
    /// and the request that is returned can be added to a batch.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::mq::{IoCompletionBatch, Operations, StartedRequest};
    ///
    /// fn complete<T: Operations>(rq: StartedRequest<T>, batch: &mut IoCompletionBatch<'_, T>) {
    ///     if let Some(rq) = rq.complete_remote() {
    ///         batch.end(rq, Ok(()));
    ///     }
    /// }
    /// ```
    #[inline]
    pub fn complete_remote(self) -> Option<CompletingRequest<T>> {
        const_assert!(T::HAS_COMPLETE);
        let rq = self.into_raw();
        // SAFETY: By the type invariant, `into_raw` passes on the ownership. The vtable has
        // `complete`.
        if unsafe { bindings::blk_mq_complete_request_remote(rq) } {
            return None;
        }
        // SAFETY: C has marked the request as complete, and has not taken it. So it is still owned
        // here.
        Some(unsafe { CompletingRequest::from_raw(rq) })
    }

    /// Puts the request on the requeue list and kicks the list.
    #[inline]
    pub fn requeue(self) {
        // SAFETY: By the type invariant, `into_raw` passes on the ownership.
        unsafe { bindings::blk_requeue(self.into_raw()) };
    }

    /// Puts the request on the requeue list, which is kicked after `delay`. As
    /// [`CompletingRequest::requeue_after`].
    pub fn requeue_after(self, delay: Delta) {
        // SAFETY: By the type invariant, `into_raw` passes on the ownership. The request is one of
        // a queue of `T`.
        unsafe { requeue_after::<T>(self.into_raw(), delay) };
    }

    /// Gives up the request until it times out.
    ///
    /// [`TimedOutRequest::try_take`](super::TimedOutRequest::try_take) takes it over again.
    #[inline]
    pub fn leave_in_flight(self) {
        const_assert!(T::HAS_TIMEOUT);
        let rq = self.into_inner();
        // SAFETY: By the type invariant, it is a request, which `into_inner` passes on.
        let pdu = unsafe { Request::pdu_of(rq.as_ptr()) };
        // After this, another CPU may own and end the request.
        //
        // SAFETY: By the type invariant the PDU is valid until the request has ended, hence until
        // the store that gives it up. Nothing is accessed after that store.
        unsafe { &*pdu }.leave_in_flight();
    }
}

impl<T: Operations> Sealed for StartedRequest<T> {}

impl<T: Operations> EndableRequest for StartedRequest<T> {
    type Driver = T;

    #[inline]
    fn end(self, result: BlkResult) {
        Self::end(self, result);
    }

    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        Self::into_raw(self)
    }
}

impl<T: Operations<Timer = Timer>> StartedRequest<T> {
    /// Starts the timer of the request. After `delay`, [`Operations::timer_expired`] is called with
    /// the request.
    #[inline]
    pub fn delay(self, delay: Delta) {
        const_assert!(T::HAS_TIMER_EXPIRED);
        let rq = self.into_inner();
        // SAFETY: By the type invariant, it is a request, which `into_inner` passes on.
        let pdu = unsafe { Request::pdu_of(rq.as_ptr()) };
        // SAFETY: As above, so this is the PDU of a request.
        let timer = unsafe { RequestPdu::raw_timer(pdu) };
        // SAFETY: By the type invariant, the timer is not active. The callback is the one in the
        // vtable of `T`, which takes over the ownership that `into_inner` gave up.
        unsafe { Timer::start(timer, delay) };
    }
}

impl<T: Operations> Deref for StartedRequest<T> {
    type Target = Request<T>;

    #[inline]
    fn deref(&self) -> &Request<T> {
        // SAFETY: By the type invariant, `self` owns the request.
        unsafe { self.rq.as_ref() }
    }
}

impl<T: Operations> Drop for StartedRequest<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, `self` owns the request, which is not used after this.
        unsafe { bindings::blk_mq_end_request(self.as_raw(), BlkStatus::IOERR.as_raw()) };
    }
}

/// A request after [`StartedRequest::complete`](super::StartedRequest::complete), to be ended or
/// requeued.
///
/// Dropping it ends the request with [`BlkStatus::IOERR`].
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

// SAFETY: A request may be ended by any thread, and the driver's data in it is `Send` and `Sync`.
unsafe impl<T: Operations> Send for CompletingRequest<T> {}

impl<T: Operations> CompletingRequest<T> {
    /// # Safety
    ///
    /// The type invariant holds, and the result takes ownership of the request.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement.
            rq: unsafe { NonNull::new_unchecked(Request::cast_from(rq)) },
        }
    }

    /// Passes ownership of the request to C.
    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        // SAFETY: By the type invariant, as C does not have the request yet.
        unsafe { ManuallyDrop::new(self).rq.as_ref() }.as_raw()
    }

    /// Ends the request.
    #[inline]
    pub fn end(self, result: BlkResult) {
        // SAFETY: By the type invariant, `into_raw` passes on the ownership.
        unsafe { bindings::blk_mq_end_request(self.into_raw(), status::as_raw(result)) };
    }

    /// Puts the request on the requeue list and kicks the list.
    #[inline]
    pub fn requeue(self) {
        // SAFETY: By the type invariant, `into_raw` passes on the ownership.
        unsafe { bindings::blk_requeue(self.into_raw()) };
    }

    /// Puts the request on the requeue list, which is kicked after `delay`.
    ///
    /// The requests of a disk that are requeued are dispatched together. So this one is dispatched
    /// earlier if another one is to be, and when the disk is removed. The resolution is a
    /// millisecond, and the limit is 24 days.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::mq::{CompletingRequest, Operations}, time::Delta};
    ///
    /// /// Ends a request unless the device has asked for another attempt.
    /// fn complete<T: Operations>(rq: CompletingRequest<T>, retry_after: Option<Delta>) {
    ///     match retry_after {
    ///         Some(delay) => rq.requeue_after(delay),
    ///         None => rq.end(Ok(())),
    ///     }
    /// }
    /// ```
    pub fn requeue_after(self, delay: Delta) {
        // SAFETY: By the type invariant, `into_raw` passes on the ownership. The request is one of
        // a queue of `T`.
        unsafe { requeue_after::<T>(self.into_raw(), delay) };
    }
}

impl<T: Operations> Sealed for CompletingRequest<T> {}

impl<T: Operations> EndableRequest for CompletingRequest<T> {
    type Driver = T;

    #[inline]
    fn end(self, result: BlkResult) {
        Self::end(self, result);
    }

    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        Self::into_raw(self)
    }
}

impl<T: Operations> Deref for CompletingRequest<T> {
    type Target = Request<T>;

    #[inline]
    fn deref(&self) -> &Request<T> {
        // SAFETY: By the type invariant, `self` owns the request.
        unsafe { self.rq.as_ref() }
    }
}

impl<T: Operations> Drop for CompletingRequest<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, `self` owns the request, which is not used after this.
        unsafe { bindings::blk_mq_end_request(self.as_raw(), BlkStatus::IOERR.as_raw()) };
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
