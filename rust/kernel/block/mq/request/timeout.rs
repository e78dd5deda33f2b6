// SPDX-License-Identifier: GPL-2.0

//! A request that took too long, which somebody else may own.

use super::super::{
    context::Invariant,
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
///
/// Each answer is sound, whatever has become of the request: C sets its timer, and marks it, before
/// it puts the reference to it. That more time is asked for through the request
/// ([`TimedOut::reset_timer`]) only stops a handler that has taken it over from asking by mistake.
#[must_use = "the timeout handler returns it"]
pub struct TimeoutAction<'t> {
    answer: bindings::blk_eh_timer_return,
    _callback: Invariant<'t>,
}

impl TimeoutAction<'_> {
    /// The request has ended, or its owner will end it. It does not time out again.
    pub const DONE: Self = Self {
        answer: bindings::blk_eh_timer_return_BLK_EH_DONE,
        _callback: PhantomData,
    };

    pub(in super::super) fn as_raw(&self) -> bindings::blk_eh_timer_return {
        self.answer
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
/// fn timeout<'t, T: Operations>(rq: TimedOut<'t, T>) -> TimeoutAction<'t> {
///     match rq.claim() {
///         Ok(rq) => {
///             rq.end(Err(BlkStatus::TIMEOUT));
///             TimeoutAction::DONE
///         }
///         // Its owner is working on it.
///         Err(rq) => rq.reset_timer(),
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
    _callback: Invariant<'t>,
}

impl<'t, T: Operations> TimedOut<'t, T> {
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

    /// The hardware queue that the request was given to, which stays for the whole callback.
    pub fn hw_queue(&self) -> HwQueue<'t, T> {
        // SAFETY: By the type invariant, the request keeps its hardware queue until the reference
        // to it is put, and the disk does not go before, nor the data of either.
        unsafe { HwQueue::from_raw(NonNull::new_unchecked((*self.as_ptr()).mq_hctx)) }
    }

    /// Takes over a request that was parked.
    ///
    /// # Errors
    ///
    /// Fails if it was not parked, or has been taken over.
    pub fn claim(self) -> Result<Started<T>, Self> {
        // SAFETY: By the type invariant. Nobody has exclusive access to the private part.
        if unsafe { (*Request::command_of(self.rq.as_ptr())).claim() } {
            // SAFETY: `park` gave up a started request, and only one `claim` gets it.
            Ok(unsafe { Started::from_raw(self.rq) })
        } else {
            Err(self)
        }
    }

    /// Gives the request the same time again.
    pub fn reset_timer(self) -> TimeoutAction<'t> {
        TimeoutAction {
            answer: bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
            _callback: PhantomData,
        }
    }
}
