// SPDX-License-Identifier: GPL-2.0

//! What lies behind C's `struct request`: the driver's data of a request.

use super::super::Operations;
use super::timer::{
    Callback,
    Timer, //
    TimerStorage,
};
use crate::{
    bindings,
    page::PAGE_SIZE,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
};

use core::mem::offset_of;

/// The place of a request that has an owner.
pub(in super::super) const OWNED: u64 = 0;
/// The place of one that has no owner until it times out.
const UNOWNED: u64 = 1;

/// The private part of a request: made in `init_request`, dropped in `exit_request`, the same for
/// many I/Os in between.
#[pin_data]
pub(in super::super) struct RequestPdu<T: Operations> {
    #[pin]
    timer: T::Timer,
    /// Where the request is: [`OWNED`], [`UNOWNED`], or a larger number that a `PendingList` has.
    /// One that has left such a list may still have a number which that list does not have any
    /// more.
    place: Atomic<u64>,
    #[pin]
    data: T::RequestData,
}

impl<T: Operations> RequestPdu<T> {
    pub(in super::super) fn new(
        callback: Callback,
        data: impl PinInit<T::RequestData>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            timer <- T::Timer::new(callback),
            place: Atomic::new(OWNED),
            data <- data,
        })
    }

    /// The command in which `timer` is.
    ///
    /// # Safety
    ///
    /// `timer` points to the timer in a command.
    #[inline]
    pub(in super::super) unsafe fn of_timer(timer: *mut bindings::hrtimer) -> *const Self {
        // SAFETY: By the safety requirement, the result is in the same allocation: what C knows
        // is the beginning of a `Timer`, by the invariants of that.
        unsafe { timer.cast_const().byte_sub(offset_of!(Self, timer)).cast() }
    }

    /// The driver's data.
    #[inline]
    pub(super) fn data(&self) -> &T::RequestData {
        &self.data
    }

    /// Where the request is, as far as the caller can know: what guards its place says more.
    #[inline]
    pub(super) fn place(&self) -> u64 {
        self.place.load(Relaxed)
    }

    /// Says where the request is, which the caller owns.
    #[inline]
    pub(in super::super) fn set_place(&self, place: u64) {
        self.place.store(place, Relaxed);
    }

    /// Gives the request up until [`Self::try_take`].
    ///
    /// What was done before is visible to the CPU that takes it.
    #[inline]
    pub(super) fn leave_in_flight(&self) {
        self.place.store(UNOWNED, Release);
    }

    /// Takes the request that was given up by [`Self::leave_in_flight`], if it was; only one caller
    /// succeeds.
    pub(super) fn try_take(&self) -> bool {
        self.place() == UNOWNED && self.place.cmpxchg(UNOWNED, OWNED, Acquire).is_ok()
    }
}

impl<T: Operations<Timer = Timer>> RequestPdu<T> {
    /// The timer of the request.
    #[inline]
    pub(super) fn timer(&self) -> &Timer {
        &self.timer
    }

    /// The timer in the command at `this`.
    ///
    /// # Safety
    ///
    /// `this` points to a command.
    #[inline]
    pub(super) unsafe fn raw_timer(this: *const Self) -> *const Timer {
        // SAFETY: By the safety requirement, for the field projection.
        unsafe { &raw const (*this).timer }
    }
}

/// The size of a command in bytes, for C.
pub(in super::super) const fn cmd_size<T: Operations>() -> u32 {
    // A request for flushes is made anew whenever the number of queues changes, where C cannot do
    // without it. So a page is enough for it, as more in a row may not be there. That is also less
    // than the 16 pages into which C puts several requests without a look at whether one fits.
    const_assert!(size_of::<RequestPdu<T>>() <= PAGE_SIZE - size_of::<bindings::request>());
    size_of::<RequestPdu<T>>() as u32
}
