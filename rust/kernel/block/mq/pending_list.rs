// SPDX-License-Identifier: GPL-2.0

//! A list of started requests that can time out while they are in it.
//!
//! When all requests of a long list time out, each is removed from the middle of the list. To make
//! this as fast as a removal at the ends, the list is doubly linked, and each request stores the
//! number of the list that owns it. Numbers are not reused, so a number that a request still stores
//! after it has left a list is harmless.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    pdu::OWNER_HANDLE,
    request_list::RawList,
    Operations,
    OverdueRequest,
    Request,
    RequestList,
    StartedRequest,
    TimedOutRequest,
    TimeoutAction, //
};
use crate::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
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

/// How many numbers a list reserves at once, to avoid contention on [`NEXT_NUMBER`].
const NUMBERS_PER_LIST: u64 = 1 << 8;

/// The first number that no list has reserved. A 64-bit counter does not wrap around while the
/// system runs.
static NEXT_NUMBER: Atomic<u64> = Atomic::new(NUMBERS_PER_LIST);

/// Returns a pointer to the link from `rq` to its predecessor.
///
/// # Safety
///
/// `rq` is in a list, or is being added to one.
#[inline]
unsafe fn prev_link(rq: *mut bindings::request) -> *mut *mut bindings::request {
    const OFFSET: usize = offset_of!(bindings::request, __bindgen_anon_1.queuelist.prev);
    // SAFETY: By the safety requirement, `rq` is a request, which has this field.
    let link = unsafe { rq.byte_add(OFFSET) };
    // C's lists store a pointer to a list head here. This list is never passed to C.
    link.cast()
}

/// Returns the predecessor of `rq`, or null.
///
/// # Safety
///
/// `rq` is in a list.
#[inline]
unsafe fn prev(rq: *mut bindings::request) -> *mut bindings::request {
    // SAFETY: By the safety requirement.
    let link = unsafe { prev_link(rq) };
    // SAFETY: By the safety requirement, the link is initialised, and nothing else writes it.
    unsafe { link.read() }
}

/// Sets the predecessor of `rq` to `prev`.
///
/// # Safety
///
/// `rq` is in a list, or is being added to one, and the caller may change the list.
#[inline]
unsafe fn set_prev(rq: *mut bindings::request, prev: *mut bindings::request) {
    // SAFETY: By the safety requirement.
    let link = unsafe { prev_link(rq) };
    // SAFETY: By the safety requirement. A driver may use this field of a request that it owns.
    unsafe { link.write(prev) };
}

/// A list of started requests that can time out while they are in it.
///
/// It is not synchronised and belongs under a lock. It is linked through the requests, so its
/// operations do not allocate memory. Dropping it ends all requests in it with
/// [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR).
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::{
///         mq::{HwQueue, Operations, PendingList, StartedRequest, TimedOutRequest, TimeoutAction},
///         BlkStatus,
///     },
///     sync::SpinLock,
/// };
///
/// /// Driver data of a hardware queue: the requests that the device is working on.
/// struct InFlight<T: Operations>(SpinLock<PendingList<T>>);
///
/// fn begin<T: Operations<HwData = InFlight<T>>>(hw: HwQueue<'_, T>, rq: StartedRequest<T>) {
///     hw.data().0.lock().push_back(rq);
/// }
///
/// fn finish_first<T: Operations<HwData = InFlight<T>>>(hw: HwQueue<'_, T>) {
///     let first = hw.data().0.lock().pop_front();
///     if let Some(rq) = first {
///         rq.end(Ok(()));
///     }
/// }
///
/// fn timeout<'t, T: Operations<HwData = InFlight<T>>>(
///     rq: TimedOutRequest<'t, T>,
/// ) -> TimeoutAction<'t> {
///     let taken = rq.hw_queue().data().0.lock().remove(rq);
///     match taken {
///         Ok((rq, done)) => {
///             rq.end(Err(BlkStatus::TIMEOUT));
///             done
///         }
///         // Another CPU has just finished it.
///         Err(rq) => rq.reset_timer(),
///     }
/// }
/// ```
///
/// # Invariants
///
/// It owns the requests in it, as [`StartedRequest`] would. They are linked by `rq_next`, and in
/// the reverse direction by `prev`. Their owner is `number`, and no other request has that owner:
/// no other list ever has this number, and this list has it during one period only, at the start
/// and end of which it is empty. The numbers from `number` up to `end` are its own.
pub struct PendingList<T: Operations> {
    list: RawList,
    number: u64,
    end: u64,
    _requests: PhantomData<StartedRequest<T>>,
}

// SAFETY: The list owns requests that are `Send`.
unsafe impl<T: Operations> Send for PendingList<T> {}

impl<T: Operations> PendingList<T> {
    /// Creates an empty list.
    pub fn new() -> Self {
        let number = NEXT_NUMBER.fetch_add(NUMBERS_PER_LIST, Relaxed);
        // INVARIANT: The list is empty, and no other list gets these numbers.
        Self {
            list: RawList::new(),
            number,
            end: number + NUMBERS_PER_LIST,
            _requests: PhantomData,
        }
    }

    /// Returns whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the last request, or null.
    #[inline]
    fn last(&self) -> *mut bindings::request {
        if self.list.is_empty() {
            ptr::null_mut()
        } else {
            self.list.tail
        }
    }

    /// Sets the owner of `rq`.
    ///
    /// # Safety
    ///
    /// `rq` is a request of `T` that the caller owns.
    #[inline]
    unsafe fn set_owner(rq: *mut bindings::request, owner: u64) {
        // SAFETY: By the safety requirement.
        let pdu = unsafe { Request::<T>::pdu_of(Request::cast_from(rq)) };
        // SAFETY: By the safety requirement, the PDU is initialised.
        unsafe { &*pdu }.set_owner(owner);
    }

    /// Appends a request.
    #[inline]
    pub fn push_back(&mut self, rq: StartedRequest<T>) {
        let rq = rq.into_inner().as_ptr().cast();
        let last = self.last();
        // SAFETY: `into_inner` gave up the request, which is being added to the list.
        unsafe { set_prev(rq, last) };
        // SAFETY: As above.
        unsafe { Self::set_owner(rq, self.number) };
        // INVARIANT: It is linked, and its owner is set.
        //
        // SAFETY: As above. A request that a `StartedRequest` owned is in no list.
        unsafe { self.list.push_back(rq) };
    }

    /// Moves all requests of `other` to the end of this list, in time linear in their number.
    #[inline]
    pub fn append(&mut self, other: &mut RequestList<T>) {
        let other = other.as_raw();
        let (mut last, mut rq) = (self.last(), other.head);
        while !rq.is_null() {
            // SAFETY: `other` owns the request, which is being added to this list.
            unsafe { set_prev(rq, last) };
            // SAFETY: As above.
            unsafe { Self::set_owner(rq, self.number) };
            last = rq;
            // SAFETY: As above.
            rq = unsafe { RawList::next(rq) };
        }
        // INVARIANT: They are linked, and their owner is set.
        self.list.append(other);
    }

    /// Removes and returns the first request.
    #[inline]
    pub fn pop_front(&mut self) -> Option<StartedRequest<T>> {
        let rq = self.list.pop_front()?;
        if !self.list.is_empty() {
            // SAFETY: By the type invariant, the list owns its head.
            unsafe { set_prev(self.list.head, ptr::null_mut()) };
        }
        // SAFETY: By the type invariant, the list owned the request.
        unsafe { Self::set_owner(rq, OWNER_HANDLE) };
        // SAFETY: As above, so it is not null.
        let rq = unsafe { NonNull::new_unchecked(Request::cast_from(rq)) };
        // SAFETY: By the type invariant, the list owned the request, which is in no list now.
        Some(unsafe { StartedRequest::from_raw(rq) })
    }

    /// Removes and returns all requests, in order.
    #[inline]
    pub fn take(&mut self) -> RequestList<T> {
        if !self.list.is_empty() {
            self.renumber();
        }
        // INVARIANT: This list is now empty. The removed requests store the old number, which this
        // list no longer has.
        let taken = mem::replace(&mut self.list, RawList::new());
        // SAFETY: By the type invariant, this list owned the requests.
        unsafe { RequestList::from_raw(taken) }
    }

    /// Gives the list, which is about to become empty, another number.
    #[inline]
    fn renumber(&mut self) {
        // INVARIANT: The number is one of its own, or one of a new range that no other list gets.
        self.number += 1;
        if self.number == self.end {
            self.number = NEXT_NUMBER.fetch_add(NUMBERS_PER_LIST, Relaxed);
            self.end = self.number + NUMBERS_PER_LIST;
        }
    }

    /// Removes a request that timed out, and takes it over. The second value is what
    /// [`Operations::timeout`] must return.
    ///
    /// # Errors
    ///
    /// Returns the request if it is not in this list.
    pub fn remove<'t>(
        &mut self,
        rq: TimedOutRequest<'t, T>,
    ) -> Result<(OverdueRequest<T>, TimeoutAction<'t>), TimedOutRequest<'t, T>> {
        // By the type invariant, a request with another owner is not in the list. While the list is
        // borrowed exclusively, no request gets this owner or loses it.
        if rq.owner() != self.number {
            return Err(rq);
        }
        let raw = rq.as_ptr();
        // SAFETY: By the type invariant, the list owns the request.
        let before = unsafe { prev(raw) };
        // SAFETY: As above.
        let after = unsafe { RawList::next(raw) };
        if before.is_null() {
            self.list.head = after;
        } else {
            // SAFETY: By the type invariant, the list owns the predecessor.
            unsafe { RawList::set_next(before, after) };
        }
        if after.is_null() {
            self.list.tail = before;
        } else {
            // SAFETY: By the type invariant, the list owns the successor.
            unsafe { set_prev(after, before) };
        }
        // INVARIANT: The predecessor and the successor are linked to each other.
        //
        // SAFETY: The list owned the request, and passes ownership to the caller.
        unsafe { Self::set_owner(raw, OWNER_HANDLE) };
        // SAFETY: As above.
        Ok(unsafe { rq.take_over() })
    }
}

impl<T: Operations> Default for PendingList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Operations> Drop for PendingList<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
