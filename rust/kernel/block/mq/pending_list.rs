// SPDX-License-Identifier: GPL-2.0

//! A list of requests that may time out where they are.
//!
//! When all requests of a long list time out, each is taken out of its middle. So that takes no
//! longer than from its ends: the list is linked both ways, and a request knows the number of the
//! list that it is in. Numbers do not come again, so what a request knows of a list which it has
//! left does no harm.
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

/// How many numbers a list takes at once, so that lists seldom meet at [`NEXT_NUMBER`].
const NUMBERS_PER_LIST: u64 = 1 << 20;

/// The first number that no list has taken. It does not come round.
static NEXT_NUMBER: Atomic<u64> = Atomic::new(NUMBERS_PER_LIST);

/// Where `rq` links to the one before.
///
/// # Safety
///
/// `rq` is in a list, or is put there.
#[inline]
unsafe fn prev_link(rq: *mut bindings::request) -> *mut *mut bindings::request {
    const OFFSET: usize = offset_of!(bindings::request, __bindgen_anon_1.queuelist.prev);
    // SAFETY: By the safety requirement, it is a request, which has this field.
    let link = unsafe { rq.byte_add(OFFSET) };
    // C's lists would have a pointer to the field here; this list is not for C.
    link.cast()
}

/// The request that `rq` links back to, or null.
///
/// # Safety
///
/// `rq` is in a list.
#[inline]
unsafe fn prev(rq: *mut bindings::request) -> *mut bindings::request {
    // SAFETY: By the safety requirement.
    let link = unsafe { prev_link(rq) };
    // SAFETY: By the safety requirement, the link is set, and nothing else writes it.
    unsafe { link.read() }
}

/// Links `rq` back to `prev`.
///
/// # Safety
///
/// `rq` is in a list, or is put there, and the caller may change the list.
#[inline]
unsafe fn set_prev(rq: *mut bindings::request, prev: *mut bindings::request) {
    // SAFETY: By the safety requirement.
    let link = unsafe { prev_link(rq) };
    // SAFETY: By the safety requirement; a driver may use this field of a request it owns.
    unsafe { link.write(prev) };
}

/// A list of requests that the driver has started, which may time out in it.
///
/// It is not synchronised; put it under a lock. It never fails, and takes no memory but its head.
/// Dropping it ends all requests in it with [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR).
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
/// /// What the driver keeps for each hardware queue: the requests that the device works on.
/// struct Working<T: Operations>(SpinLock<PendingList<T>>);
///
/// fn begin<T: Operations<HwData = Working<T>>>(hw: HwQueue<'_, T>, rq: StartedRequest<T>) {
///     hw.data().0.lock().push_back(rq);
/// }
///
/// fn finish_first<T: Operations<HwData = Working<T>>>(hw: HwQueue<'_, T>) {
///     let first = hw.data().0.lock().pop_front();
///     if let Some(rq) = first {
///         rq.end(Ok(()));
///     }
/// }
///
/// fn timeout<'t, T: Operations<HwData = Working<T>>>(
///     rq: TimedOutRequest<'t, T>,
/// ) -> TimeoutAction<'t> {
///     let taken = rq.hw_queue().data().0.lock().remove(rq);
///     match taken {
///         Ok((rq, done)) => {
///             rq.end(Err(BlkStatus::TIMEOUT));
///             done
///         }
///         // It was finished at the last moment.
///         Err(rq) => rq.reset_timer(),
///     }
/// }
/// ```
///
/// # Invariants
///
/// It owns the requests in it, as [`StartedRequest`] would. They are linked by [`prev`] as by
/// `rq_next`, the other way round. Their owner is `number`, and no other request has that owner: no
/// other list ever has this number, and this list has it during one period only, at the start and
/// end of which it is empty. The numbers from `number` up to `end` are its own.
pub struct PendingList<T: Operations> {
    list: RawList,
    number: u64,
    end: u64,
    _requests: PhantomData<StartedRequest<T>>,
}

// SAFETY: It owns requests that are `Send`.
unsafe impl<T: Operations> Send for PendingList<T> {}

impl<T: Operations> PendingList<T> {
    /// Makes an empty list.
    pub fn new() -> Self {
        let number = NEXT_NUMBER.fetch_add(NUMBERS_PER_LIST, Relaxed);
        // INVARIANT: There is none, and no other list gets these numbers.
        Self {
            list: RawList::new(),
            number,
            end: number + NUMBERS_PER_LIST,
            _requests: PhantomData,
        }
    }

    /// Whether no request is in the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The last request, or null.
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
        // SAFETY: By the safety requirement, the private part is there.
        unsafe { &*pdu }.set_owner(owner);
    }

    /// Appends a request.
    #[inline]
    pub fn push_back(&mut self, rq: StartedRequest<T>) {
        let rq = rq.into_inner().as_ptr().cast();
        let last = self.last();
        // SAFETY: `into_inner` gave up the request, which is put into the list here.
        unsafe { set_prev(rq, last) };
        // SAFETY: As above.
        unsafe { Self::set_owner(rq, self.number) };
        // INVARIANT: It is linked, and its owner is set.
        //
        // SAFETY: As above; a request that a `StartedRequest` owns is in no list.
        unsafe { self.list.push_back(rq) };
    }

    /// Moves all requests of `other` behind those of this list, each of which it looks at.
    #[inline]
    pub fn append(&mut self, other: &mut RequestList<T>) {
        let other = other.as_raw();
        let (mut last, mut rq) = (self.last(), other.head);
        while !rq.is_null() {
            // SAFETY: `other` owns the request, which is put into this list below.
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

    /// Takes the first request.
    #[inline]
    pub fn pop_front(&mut self) -> Option<StartedRequest<T>> {
        let rq = self.list.pop_front()?;
        if !self.list.is_empty() {
            // SAFETY: By the type invariant, the list owns its head.
            unsafe { set_prev(self.list.head, ptr::null_mut()) };
        }
        // SAFETY: By the type invariant, the list owned the request.
        unsafe { Self::set_owner(rq, OWNER_HANDLE) };
        // SAFETY: As above; it is not null.
        let rq = unsafe { NonNull::new_unchecked(Request::cast_from(rq)) };
        // SAFETY: By the type invariant, the list owned the request, which is in no list now.
        Some(unsafe { StartedRequest::from_raw(rq) })
    }

    /// Takes all requests, in order.
    #[inline]
    pub fn take(&mut self) -> RequestList<T> {
        if !self.list.is_empty() {
            self.renumber();
        }
        // INVARIANT: The list that is left is empty. What is taken has the old number, which this
        // list does not have any more.
        let taken = mem::replace(&mut self.list, RawList::new());
        // SAFETY: By the type invariant, this list owned the requests.
        unsafe { RequestList::from_raw(taken) }
    }

    /// Gives the list, which is about to be empty, another number.
    #[inline]
    fn renumber(&mut self) {
        // INVARIANT: A number of its own, or of a new supply that no other list gets.
        self.number += 1;
        if self.number == self.end {
            self.number = NEXT_NUMBER.fetch_add(NUMBERS_PER_LIST, Relaxed);
            self.end = self.number + NUMBERS_PER_LIST;
        }
    }

    /// Takes over a request that timed out, with the answer that it does not time out again.
    ///
    /// # Errors
    ///
    /// Fails if the request is not in this list.
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
            // SAFETY: By the type invariant, the list owns the one before.
            unsafe { RawList::set_next(before, after) };
        }
        if after.is_null() {
            self.list.tail = before;
        } else {
            // SAFETY: By the type invariant, the list owns the one behind.
            unsafe { set_prev(after, before) };
        }
        // INVARIANT: Those around it are linked to each other.
        //
        // SAFETY: The list owned the request, and gives it to this caller.
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
