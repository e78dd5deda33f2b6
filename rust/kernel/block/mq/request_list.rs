// SPDX-License-Identifier: GPL-2.0

//! An intrusive list of requests.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Operations,
    Request,
    StartedRequest, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    mem::{
        self,
        offset_of, //
    },
    ptr::{
        self,
        NonNull, //
    },
};

/// C's `struct rq_list`.
///
/// # Invariants
///
/// `head` is null, or the first of a chain of requests that are linked by `rq_next`. The last of
/// them is `tail`, whose link is null. Nothing else reads or changes the links.
pub(super) struct RawList {
    pub(super) head: *mut bindings::request,
    pub(super) tail: *mut bindings::request,
}

impl RawList {
    #[inline]
    pub(super) const fn new() -> Self {
        // INVARIANT: The list is empty.
        Self {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
        }
    }

    /// Removes all requests from `list`.
    ///
    /// # Safety
    ///
    /// `list` is valid, and the caller may write it and owns the requests in it.
    #[inline]
    pub(super) unsafe fn take(list: *mut bindings::rq_list) -> Self {
        // SAFETY: By the safety requirement.
        let taken = unsafe { list.read() };
        // SAFETY: By the safety requirement.
        unsafe { Self::new().put(list) };
        // INVARIANT: C's list is such a chain.
        Self {
            head: taken.head,
            tail: taken.tail,
        }
    }

    /// Moves all requests to `list`, which must be empty.
    ///
    /// # Safety
    ///
    /// `list` is valid, and the caller may write it.
    #[inline]
    pub(super) unsafe fn put(self, list: *mut bindings::rq_list) {
        let raw = bindings::rq_list {
            head: self.head,
            tail: self.tail,
        };
        // SAFETY: By the safety requirement.
        unsafe { list.write(raw) };
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Returns a pointer to the link from `rq` to its successor.
    ///
    /// # Safety
    ///
    /// `rq` is in the list, or is being added to it.
    #[inline]
    unsafe fn link(rq: *mut bindings::request) -> *mut *mut bindings::request {
        const OFFSET: usize = offset_of!(bindings::request, __bindgen_anon_1.rq_next);
        // SAFETY: By the safety requirement, `rq` is a request, which has this field.
        unsafe { rq.byte_add(OFFSET) }.cast()
    }

    /// Returns the successor of `rq`, or null.
    ///
    /// # Safety
    ///
    /// `rq` is in the list.
    #[inline]
    pub(super) unsafe fn next(rq: *mut bindings::request) -> *mut bindings::request {
        // SAFETY: By the safety requirement.
        let link = unsafe { Self::link(rq) };
        // SAFETY: By the safety requirement, the link is initialised, and nothing else writes it.
        unsafe { link.read() }
    }

    /// Sets the successor of `rq` to `next`.
    ///
    /// # Safety
    ///
    /// `rq` is in the list, or is being added to it, and the caller may change the list.
    #[inline]
    pub(super) unsafe fn set_next(rq: *mut bindings::request, next: *mut bindings::request) {
        // SAFETY: By the safety requirement.
        let link = unsafe { Self::link(rq) };
        // SAFETY: By the safety requirement. A driver may use this field of a request that it owns.
        unsafe { link.write(next) };
    }

    /// Appends `rq`.
    ///
    /// # Safety
    ///
    /// The caller owns `rq`, which is in no list, and passes ownership to this list.
    #[inline]
    pub(super) unsafe fn push_back(&mut self, rq: *mut bindings::request) {
        // SAFETY: By the safety requirement, `rq` is being added to the list.
        unsafe { Self::set_next(rq, ptr::null_mut()) };
        if self.head.is_null() {
            self.head = rq;
        } else {
            // SAFETY: By the type invariant, the list owns its tail.
            unsafe { Self::set_next(self.tail, rq) };
        }
        // INVARIANT: The previous tail links to `rq`, and the link of `rq` is null.
        self.tail = rq;
    }

    /// Removes and returns the first request, which the caller then owns.
    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<*mut bindings::request> {
        let rq = self.head;
        if rq.is_null() {
            return None;
        }
        // INVARIANT: The chain continues after its head, or is empty, in which case `tail` is not
        // used.
        // SAFETY: By the type invariant, the list owns its head.
        self.head = unsafe { Self::next(rq) };
        // SAFETY: As above. The list no longer reads the link.
        unsafe { Self::set_next(rq, ptr::null_mut()) };
        Some(rq)
    }

    /// Moves all requests of `other` to the end of `self`.
    #[inline]
    pub(super) fn append(&mut self, other: &mut Self) {
        if other.is_empty() {
            return;
        }
        let other = mem::replace(other, Self::new());
        if self.is_empty() {
            *self = other;
        } else {
            // SAFETY: By the type invariant, the list owns its tail.
            unsafe { Self::set_next(self.tail, other.head) };
            // INVARIANT: The second chain follows the first.
            self.tail = other.tail;
        }
    }
}

/// A list of started requests.
///
/// A request is in at most one list. The list is linked through the requests, so its operations do
/// not allocate memory. It is not synchronised and belongs under a lock. Requests that can time out
/// while they are in a list belong in a [`PendingList`](super::PendingList).
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{Operations, RequestList, StartedRequest};
///
/// fn end_all<T: Operations>(list: &mut RequestList<T>) {
///     while let Some(rq) = list.pop_front() {
///         rq.end(Ok(()));
///     }
/// }
///
/// fn in_order<T: Operations>(first: StartedRequest<T>, second: StartedRequest<T>) {
///     let mut list = RequestList::new();
///     list.push_back(first);
///     list.push_back(second);
///     end_all(&mut list);
///     assert!(list.is_empty());
/// }
/// ```
///
/// Dropping the list ends all requests in it with
/// [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR).
///
/// # Invariants
///
/// It owns the requests in it, as [`StartedRequest`] would.
pub struct RequestList<T: Operations> {
    list: RawList,
    _requests: PhantomData<StartedRequest<T>>,
}

// SAFETY: The list owns requests that are `Send`.
unsafe impl<T: Operations> Send for RequestList<T> {}

impl<T: Operations> RequestList<T> {
    /// Creates an empty list.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: The list is empty.
        Self {
            list: RawList::new(),
            _requests: PhantomData,
        }
    }

    /// Creates a list of the requests in `list`.
    ///
    /// # Safety
    ///
    /// The type invariant holds for the result.
    #[inline]
    pub(super) unsafe fn from_raw(list: RawList) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            list,
            _requests: PhantomData,
        }
    }

    /// Returns the raw list, from which the caller may remove all requests.
    #[inline]
    pub(super) fn as_raw(&mut self) -> &mut RawList {
        &mut self.list
    }

    /// Returns whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Appends a request.
    #[inline]
    pub fn push_back(&mut self, rq: StartedRequest<T>) {
        let rq = rq.into_inner().as_ptr().cast();
        // INVARIANT: `into_inner` gave up the request.
        // SAFETY: As above. A request that a `StartedRequest` owned is in no list.
        unsafe { self.list.push_back(rq) };
    }

    /// Removes and returns the first request.
    #[inline]
    pub fn pop_front(&mut self) -> Option<StartedRequest<T>> {
        let rq = self.list.pop_front()?;
        // SAFETY: By the type invariant, `rq` was a request of the list, hence not null.
        let rq = unsafe { NonNull::new_unchecked(Request::cast_from(rq)) };
        // SAFETY: By the type invariant, the list owned the request, which is in no list now.
        Some(unsafe { StartedRequest::from_raw(rq) })
    }

    /// Returns a reference to the first request.
    #[inline]
    pub fn front(&self) -> Option<&Request<T>> {
        // SAFETY: By the type invariant, the list owns the request while it is borrowed.
        unsafe { Request::cast_from(self.list.head).as_ref() }
    }

    /// Moves all requests of `other` to the end of this list.
    #[inline]
    pub fn append(&mut self, other: &mut Self) {
        self.list.append(&mut other.list);
    }

    /// Removes and returns all requests, in order.
    #[inline]
    pub fn take(&mut self) -> Self {
        mem::replace(self, Self::new())
    }
}

impl<T: Operations> Default for RequestList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Operations> Drop for RequestList<T> {
    #[inline]
    fn drop(&mut self) {
        while let Some(rq) = self.pop_front() {
            drop(rq);
        }
    }
}
