// SPDX-License-Identifier: GPL-2.0

//! Requests that end together, which costs less than one by one.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
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

/// Requests that end together, without error.
///
/// A batch of one's own is made by [`Self::new`], and ends its requests when dropped. Those in the
/// one that [`Operations::poll`] is lent end after `poll` has returned.
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
///     // They end here.
/// }
/// ```
///
/// # Invariants
///
/// The batch owns the requests in `inner`, those that were there when it was lent included. If
/// there are any, `complete` is the function that ends them.
#[repr(transparent)]
pub struct IoCompletionBatch<'b, T: Operations> {
    inner: bindings::io_comp_batch,
    _requests: PhantomData<&'b mut StartedRequest<T>>,
}

impl<T: Operations> IoCompletionBatch<'_, T> {
    /// Makes an empty batch.
    #[inline]
    pub fn new() -> Self {
        // INVARIANT: It is empty.
        Self {
            inner: pin_init::zeroed(),
            _requests: PhantomData,
        }
    }

    /// The batch at `lent`, whose requests stay there unless all of it is moved.
    ///
    /// # Safety
    ///
    /// `lent` is valid for `'a`, is not used elsewhere meanwhile, and C ends the requests in it by
    /// its `complete`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(batch: NonNull<bindings::io_comp_batch>) -> &'a mut Self {
        // INVARIANT: By the safety requirement.
        // SAFETY: By the safety requirement; it has the layout of `inner`.
        unsafe { batch.cast().as_mut() }
    }

    /// Adds a request that has succeeded.
    ///
    /// Gives it back if the batch cannot take it, as is the case for one of an I/O scheduler, or of
    /// a flush.
    #[inline]
    pub fn add(&mut self, rq: StartedRequest<T>) -> Result<(), StartedRequest<T>> {
        // INVARIANT: If it is added, the batch owns it, and `complete` is the one for it.
        // SAFETY: By the type invariants, the request is started and in no other list.
        if unsafe { bindings::blk_batch_add(rq.as_raw(), &mut self.inner) } {
            let _ = rq.into_inner();
            Ok(())
        } else {
            Err(rq)
        }
    }

    /// Ends a request: as one of the batch if it takes it, else alone.
    #[inline]
    pub fn end(&mut self, rq: StartedRequest<T>, result: BlkResult) {
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
            // SAFETY: By the type invariants, it ends the requests, which the batch owns.
            unsafe { complete(&mut self.inner) };
        }
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
