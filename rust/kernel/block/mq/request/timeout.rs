// SPDX-License-Identifier: GPL-2.0

//! A request that took too long, which somebody else may own.

use super::super::{
    HwQueue,
    Operations, //
};
use super::{
    Request,
    Started, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// What is to become of a request that timed out: C's `enum blk_eh_timer_return`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeoutAction {
    /// It has ended, or its owner will end it. It does not time out again.
    Done,
    /// It gets the same time again.
    ResetTimer,
}

impl TimeoutAction {
    pub(in super::super) fn as_raw(self) -> bindings::blk_eh_timer_return {
        match self {
            Self::Done => bindings::blk_eh_timer_return_BLK_EH_DONE,
            Self::ResetTimer => bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
        }
    }
}

/// A request that took too long.
///
/// Its owner may be ending it at this moment, so nothing that ending changes can be read. It can be
/// taken over if it is parked, by [`Self::claim`], or in a list, by
/// [`RequestList::remove`](super::super::RequestList::remove).
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::{Operations, TimedOut, TimeoutAction}, BlkStatus};
///
/// fn timeout<T: Operations>(rq: &TimedOut<'_, T>) -> TimeoutAction {
///     match rq.claim() {
///         Some(rq) => {
///             rq.end(Err(BlkStatus::TIMEOUT));
///             TimeoutAction::Done
///         }
///         // Somebody is at it.
///         None => TimeoutAction::ResetTimer,
///     }
/// }
/// ```
///
/// # Invariants
///
/// For `'t`, the caller of the timeout handler holds a reference to the request, so that its tag is
/// not used again, its data is not dropped and its disk does not go. When the handler was called,
/// the request was started, and `queue_rq` had returned since.
pub struct TimedOut<'t, T: Operations> {
    rq: NonNull<Request<T>>,
    _callback: PhantomData<&'t ()>,
}

impl<T: Operations> TimedOut<'_, T> {
    /// # Safety
    ///
    /// The type invariant holds.
    pub(in super::super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement.
            rq: unsafe { NonNull::new_unchecked(Request::cast_from(rq)) },
            _callback: PhantomData,
        }
    }

    /// The request, for comparison.
    pub(in super::super) fn as_ptr(&self) -> *mut bindings::request {
        self.rq.as_ptr().cast()
    }

    /// The tag of the request, for messages: the owner may be requeueing it under another.
    pub fn tag(&self) -> u32 {
        // SAFETY: By the type invariant, the request is valid. Others may write the field, so it is
        // read once.
        unsafe { (&raw const (*self.as_ptr()).tag).read_volatile() as u32 }
    }

    /// What the driver keeps for the request.
    pub fn data(&self) -> &T::RequestData {
        // SAFETY: By the type invariant. Nobody has exclusive access to the private part.
        unsafe { (*Request::command_of(self.rq.as_ptr())).data() }
    }

    /// What the driver keeps for the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        self.hw_queue().queue_data()
    }

    /// The hardware queue that the request was given to.
    pub fn hw_queue(&self) -> HwQueue<'_, T> {
        // SAFETY: By the type invariant, the request keeps its hardware queue until the reference
        // to it is put.
        unsafe { HwQueue::from_raw(NonNull::new_unchecked((*self.as_ptr()).mq_hctx)) }
    }

    /// Takes over a request that was parked.
    ///
    /// `None` if it was not, or has been taken over.
    pub fn claim(&self) -> Option<Started<T>> {
        // SAFETY: By the type invariant. Nobody has exclusive access to the private part.
        let claimed = unsafe { (*Request::command_of(self.rq.as_ptr())).claim() };
        // SAFETY: `park` gave up a started request, and only one `claim` gets it.
        claimed.then(|| unsafe { Started::from_raw(self.rq) })
    }
}
