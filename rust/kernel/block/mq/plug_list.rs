// SPDX-License-Identifier: GPL-2.0

//! A list of requests that C queues at once.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    request_list::RawList,
    IdleRequest,
    Operations,
    RejectedRequest, //
};
use crate::bindings;
use core::marker::PhantomData;

/// The list of requests that is passed to [`Operations::queue_rqs`].
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{Operations, PlugList};
///
/// /// Does the same as C without `queue_rqs`.
/// fn one_by_one<'q, T: Operations>(rqs: &mut PlugList<'q, T>) {
///     while let Some(rq) = rqs.pop() {
///         let last = rqs.is_empty();
///         if let Err(rejected) = T::queue_rq(rq, last) {
///             rqs.push_back(rejected);
///         }
///     }
/// }
/// ```
///
/// # Invariants
///
/// It owns the requests in both lists, which were passed to the callback `'q` and are not started.
pub struct PlugList<'q, T: Operations> {
    /// Requests to be popped.
    next: RawList,
    /// Requests to be passed to `queue_rq` after the callback.
    retry: RawList,
    _requests: PhantomData<IdleRequest<'q, T>>,
}

impl<'q, T: Operations> PlugList<'q, T> {
    /// Calls `f` with the requests in `list`, then puts back those that are left.
    ///
    /// # Safety
    ///
    /// The caller owns the requests in `list`, runs in the callback `'q`, and may write the list.
    #[inline]
    pub(super) unsafe fn with_raw(list: *mut bindings::rq_list, f: impl FnOnce(&mut Self)) {
        // INVARIANT: By the safety requirement.
        let mut this = Self {
            // SAFETY: By the safety requirement.
            next: unsafe { RawList::take(list) },
            retry: RawList::new(),
            _requests: PhantomData,
        };
        f(&mut this);
        this.retry.append(&mut this.next);
        // SAFETY: By the safety requirement.
        unsafe { this.retry.put(list) };
    }

    /// Removes and returns the next request.
    #[inline]
    pub fn pop(&mut self) -> Option<IdleRequest<'q, T>> {
        let rq = self.next.pop_front()?;
        // SAFETY: By the type invariant.
        Some(unsafe { IdleRequest::from_raw(rq) })
    }

    /// Returns whether no request is left to pop.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Puts back a rejected request.
    ///
    /// If its status means that it is retried, it is passed to [`Operations::queue_rq`] after this
    /// callback. Otherwise it ends with that status.
    #[inline]
    pub fn push_back(&mut self, rejected: RejectedRequest<'q, T>) {
        if rejected.status().is_retried() {
            let (rq, _) = rejected.into_raw();
            // INVARIANT: By its lifetime `'q`, the request was popped from this list.
            // SAFETY: `into_raw` gave up the request.
            unsafe { self.retry.push_back(rq) };
        }
    }
}
