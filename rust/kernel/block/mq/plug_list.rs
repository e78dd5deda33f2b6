// SPDX-License-Identifier: GPL-2.0

//! The requests that a driver is given at once.
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

/// The requests that [`Operations::queue_rqs`] is given.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{Operations, PlugList};
///
/// /// What `queue_rqs` would do if it was not implemented.
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
/// It owns the requests in both lists, which were given to the callback `'q` and are not started.
pub struct PlugList<'q, T: Operations> {
    /// Those to come.
    next: RawList,
    /// Those that go to `queue_rq` next.
    retry: RawList,
    _requests: PhantomData<IdleRequest<'q, T>>,
}

impl<'q, T: Operations> PlugList<'q, T> {
    /// Calls `f` with the requests in `list`, where those that are left are put back.
    ///
    /// # Safety
    ///
    /// The caller owns the requests in `list`, is in the callback `'q` and may write the list.
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

    /// Takes the next request.
    #[inline]
    pub fn pop(&mut self) -> Option<IdleRequest<'q, T>> {
        let rq = self.next.pop_front()?;
        // SAFETY: By the type invariant.
        Some(unsafe { IdleRequest::from_raw(rq) })
    }

    /// Whether no request is left to take.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Puts back a request that was rejected.
    ///
    /// If its status says that it is to be queued again, it goes to
    /// [`Operations::queue_rq`] after this callback, else it ends with that status.
    #[inline]
    pub fn push_back(&mut self, rejected: RejectedRequest<'q, T>) {
        if rejected.status().is_retried() {
            let (rq, _) = rejected.into_raw();
            // INVARIANT: It was taken from this list, as `'q` shows.
            // SAFETY: `into_raw` gave up the request.
            unsafe { self.retry.push_back(rq) };
        }
    }
}
