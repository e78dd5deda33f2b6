// SPDX-License-Identifier: GPL-2.0

//! A request that has only to be ended.

use super::super::Operations;
use super::Request;
use crate::{
    bindings,
    block::{
        status,
        BlkResult,
        BlkStatus, //
    },
};
use core::{
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

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
    pub(in super::super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
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
