// SPDX-License-Identifier: GPL-2.0

//! Requests that end together, which costs less than one by one.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Operations,
    Started, //
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
/// A batch of one's own is made by [`Self::new`], and ends its requests when dropped. The one that
/// [`Operations::poll`] is lent ends them after `poll` has returned.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{Batch, Operations, PlugList};
///
/// fn queue_rqs<T: Operations>(rqs: &mut PlugList<'_, T>) {
///     let mut batch = Batch::new();
///     while let Some(rq) = rqs.pop() {
///         batch.end(rq.start(), Ok(()));
///     }
///     // They end here.
/// }
/// ```
///
/// # Invariants
///
/// The batch owns the requests in `own`. If `lent` is not null, it is valid for `'b`, `own` is
/// empty and the lender ends the requests.
pub struct Batch<'b, T: Operations> {
    own: bindings::io_comp_batch,
    lent: Option<NonNull<bindings::io_comp_batch>>,
    refuses: bool,
    _requests: PhantomData<&'b mut Started<T>>,
}

impl<T: Operations> Batch<'_, T> {
    /// Makes an empty batch.
    #[inline]
    pub fn new() -> Self {
        // INVARIANT: `own` is empty.
        Self {
            own: pin_init::zeroed(),
            lent: None,
            refuses: false,
            _requests: PhantomData,
        }
    }

    /// The batch at `lent`, or one that takes nothing if that is null.
    ///
    /// # Safety
    ///
    /// `lent` is null, or valid for the lifetime of the result and nobody else uses it meanwhile.
    #[inline]
    pub(super) unsafe fn lent(lent: *mut bindings::io_comp_batch) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            own: pin_init::zeroed(),
            lent: NonNull::new(lent),
            refuses: lent.is_null(),
            _requests: PhantomData,
        }
    }

    /// Adds a request that has succeeded.
    ///
    /// Gives it back if the batch cannot take it, as is the case for one of an I/O scheduler, or of
    /// a flush.
    #[inline]
    pub fn add(&mut self, rq: Started<T>) -> Result<(), Started<T>> {
        if self.refuses {
            return Err(rq);
        }
        let batch = match self.lent {
            Some(lent) => lent.as_ptr(),
            None => &raw mut self.own,
        };
        // SAFETY: By the type invariants, the batch is valid, and the request started and in no
        // other list. If it is added, the batch owns it.
        if unsafe { bindings::blk_batch_add(rq.as_raw(), batch) } {
            let _ = rq.into_inner();
            Ok(())
        } else {
            Err(rq)
        }
    }

    /// Ends a request: as one of the batch if it takes it, else alone.
    #[inline]
    pub fn end(&mut self, rq: Started<T>, result: BlkResult) {
        if result.is_err() {
            rq.end(result);
        } else if let Err(rq) = self.add(rq) {
            rq.end(result);
        }
    }
}

impl<T: Operations> Default for Batch<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Operations> Drop for Batch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.own.req_list.head.is_null() {
            // SAFETY: By the type invariant, the batch owns the requests in `own`, all of which
            // were added for this function.
            unsafe { bindings::blk_mq_end_request_batch(&mut self.own) };
        }
    }
}
