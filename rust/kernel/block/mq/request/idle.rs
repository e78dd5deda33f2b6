// SPDX-License-Identifier: GPL-2.0

//! A request that the driver has not started.

use super::super::{
    context::Invariant,
    disk_data::DiskData,
    HwQueue,
    Operations,
    QueueContext, //
};
use super::{
    Request,
    StartedRequest, //
};
use crate::{
    bindings,
    block::BlkStatus, //
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
    pub(in super::super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
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
    pub(in super::super) fn into_raw(self) -> (*mut bindings::request, BlkStatus) {
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

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
