// SPDX-License-Identifier: GPL-2.0

//! Completion of requests in batches, which costs less than one by one.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    EndableRequest,
    Operations,
    StartedRequest, //
};
use crate::{
    bindings,
    block::BlkResult, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// A batch of requests to end without error: C's `struct io_comp_batch`.
///
/// A batch that the driver creates with [`Self::new`] ends its requests when it is dropped. The
/// batch that is passed to [`Operations::poll`] ends them after `poll` has returned.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{IoCompletionBatch, Operations, PlugList};
///
/// fn queue_rqs<T: Operations>(rqs: &mut PlugList<'_, T>) {
///     let mut batch = IoCompletionBatch::new();
///     while let Some(rq) = rqs.pop() {
///         batch.end(rq.start(), Ok(()));
///     }
///     // Dropping the batch ends its requests.
/// }
/// ```
///
/// # Invariants
///
/// The batch owns the requests in `inner`, including those that C had already added. If there are
/// any, `complete` is the function that ends them.
#[repr(transparent)]
pub struct IoCompletionBatch<'b, T: Operations> {
    inner: bindings::io_comp_batch,
    _requests: PhantomData<&'b mut StartedRequest<T>>,
}

impl<T: Operations> IoCompletionBatch<'_, T> {
    /// Creates an empty batch.
    #[inline]
    pub fn new() -> Self {
        // INVARIANT: The batch is empty.
        Self {
            inner: pin_init::zeroed(),
            _requests: PhantomData,
        }
    }

    /// Wraps C's `batch`. Its requests stay there unless the whole batch is moved.
    ///
    /// # Safety
    ///
    /// `batch` is valid for `'a`, is not used elsewhere during that time, and C ends the requests
    /// in it by its `complete`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(batch: NonNull<bindings::io_comp_batch>) -> &'a mut Self {
        // INVARIANT: By the safety requirement.
        // SAFETY: By the safety requirement. `Self` has the layout of `inner`.
        unsafe { batch.cast().as_mut() }
    }

    /// Adds a request that succeeded.
    ///
    /// Returns the request if it cannot be added, for instance if it belongs to an I/O scheduler or
    /// is part of a flush.
    #[inline]
    pub fn add<R: EndableRequest<Driver = T>>(&mut self, rq: R) -> Result<(), R> {
        // INVARIANT: If the request was added, the batch owns it, and `complete` is the function
        // for it.
        // SAFETY: By the type invariants of `StartedRequest` or `CompletingRequest`, the request is
        // started, possibly complete, and in no other list.
        if unsafe { bindings::blk_batch_add(rq.as_raw(), &mut self.inner) } {
            let _ = rq.into_raw();
            Ok(())
        } else {
            Err(rq)
        }
    }

    /// Ends a request: together with the batch if it can be added to it, otherwise immediately.
    #[inline]
    pub fn end(&mut self, rq: impl EndableRequest<Driver = T>, result: BlkResult) {
        if result.is_err() {
            rq.end(result);
        } else if let Err(rq) = self.add(rq) {
            rq.end(result);
        }
    }
}

impl<T: Operations> Default for IoCompletionBatch<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Operations> Drop for IoCompletionBatch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.inner.req_list.head.is_null() {
            return;
        }
        if let Some(complete) = self.inner.complete {
            // SAFETY: By the type invariants, `complete` ends the requests, which the batch owns.
            unsafe { complete(&mut self.inner) };
        }
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
