// SPDX-License-Identifier: GPL-2.0

//! The private part of a request, which follows C's `struct request` in memory.
//!
//! It holds the data of the driver and, if the driver asks for it, a timer. The timer is set up
//! once with the request. Dropping it waits for its callback to return. The kernel crate's
//! `HrTimer` cannot be used here, because it takes an owning pointer, which a request is not.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use super::Operations;
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
    time::Delta,
    types::Opaque, //
};
use core::mem::offset_of;

/// The owner of a request that a handle, or code that holds it as one would, owns.
pub(super) const OWNER_HANDLE: u64 = 0;
/// The owner of a request that was left in flight: it has none until it times out.
const OWNER_NONE: u64 = 1;

/// The private part of a request: made in `init_request`, dropped in `exit_request`, the same for
/// many I/Os in between.
#[pin_data]
pub(super) struct RequestPdu<T: Operations> {
    #[pin]
    timer: T::Timer,
    /// The owner of the request: [`OWNER_HANDLE`], [`OWNER_NONE`], or the number of a
    /// `PendingList`, which is larger. A request that has left a list may still hold a number that
    /// the list no longer has.
    owner: Atomic<u64>,
    #[pin]
    data: T::RequestData,
}

impl<T: Operations> RequestPdu<T> {
    pub(super) fn new(
        callback: Callback,
        data: impl PinInit<T::RequestData>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            timer <- T::Timer::new(callback),
            owner: Atomic::new(OWNER_HANDLE),
            data <- data,
        })
    }

    /// The command in which `timer` is.
    ///
    /// # Safety
    ///
    /// `timer` points to the timer in a command.
    #[inline]
    pub(super) unsafe fn of_timer(timer: *mut bindings::hrtimer) -> *const Self {
        // SAFETY: By the safety requirement, the result is in the same allocation: what C knows
        // is the beginning of a `Timer`, by the invariants of that.
        unsafe { timer.cast_const().byte_sub(offset_of!(Self, timer)).cast() }
    }

    /// The driver's data.
    #[inline]
    pub(super) fn data(&self) -> &T::RequestData {
        &self.data
    }

    /// Returns the owner of the request. The value may be stale unless the caller prevents changes,
    /// for instance by holding the lock of the list.
    #[inline]
    pub(super) fn owner(&self) -> u64 {
        self.owner.load(Relaxed)
    }

    /// Sets the owner of the request, which the caller must own.
    #[inline]
    pub(super) fn set_owner(&self, owner: u64) {
        self.owner.store(owner, Relaxed);
    }

    /// Gives the request up until [`Self::try_take`].
    ///
    /// What was done before is visible to the CPU that takes it.
    #[inline]
    pub(super) fn leave_in_flight(&self) {
        self.owner.store(OWNER_NONE, Release);
    }

    /// Takes the request that was given up by [`Self::leave_in_flight`], if it was; only one caller
    /// succeeds.
    pub(super) fn try_take(&self) -> bool {
        self.owner() == OWNER_NONE
            && self
                .owner
                .cmpxchg(OWNER_NONE, OWNER_HANDLE, Acquire)
                .is_ok()
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
pub(super) const fn cmd_size<T: Operations>() -> u32 {
    // A request for flushes is made anew whenever the number of queues changes, where C cannot do
    // without it. So a page is enough for it, as more in a row may not be there. That is also less
    // than the 16 pages into which C puts several requests without a look at whether one fits.
    const_assert!(size_of::<RequestPdu<T>>() <= PAGE_SIZE - size_of::<bindings::request>());
    size_of::<RequestPdu<T>>() as u32
}

/// The function that C calls when a timer expires.
pub(super) type Callback =
    unsafe extern "C" fn(*mut bindings::hrtimer) -> bindings::hrtimer_restart;

/// What a request asks of a [`RequestTimer`]; out of reach of drivers.
pub trait TimerStorage: Sized {
    /// Makes the timer, which will call `callback`.
    fn new(callback: Callback) -> impl PinInit<Self>;
}

/// Whether requests have a timer in them; one of [`Timer`] or [`NoTimer`].
///
/// # Examples
///
/// ```
/// use kernel::{block::mq::{Operations, StartedRequest, Timer}, time::Delta};
///
/// /// Goes on in `Operations::timer_expired` of `T`.
/// fn end_late<T: Operations<Timer = Timer>>(rq: StartedRequest<T>) {
///     rq.delay(Delta::from_micros(10));
/// }
/// ```
pub trait RequestTimer: TimerStorage + 'static {}

/// Requests have no timer.
pub struct NoTimer(());

impl TimerStorage for NoTimer {
    fn new(_callback: Callback) -> impl PinInit<Self> {
        Self(())
    }
}

impl RequestTimer for NoTimer {}

/// Requests have a timer, so [`StartedRequest::delay`](super::StartedRequest::delay) can be called,
/// and they can wait in a [`DelayQueue`](super::DelayQueue).
///
/// # Invariants
///
/// `inner` is set up by `hrtimer_setup`. It comes first in memory, where `RequestPdu::of_timer`
/// looks for the whole.
#[repr(C)]
#[pin_data(PinnedDrop)]
pub struct Timer {
    #[pin]
    inner: Opaque<bindings::hrtimer>,
    /// When the request is due that waits in a `DelayQueue`, in nanoseconds. Only the owner of the
    /// request looks at it.
    deadline: Atomic<i64>,
}

impl TimerStorage for Timer {
    fn new(callback: Callback) -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: Set up here.
            inner <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid, and is pinned until `Drop` has cancelled the timer.
                unsafe {
                    bindings::hrtimer_setup(
                        slot,
                        Some(callback),
                        bindings::CLOCK_MONOTONIC as bindings::clockid_t,
                        bindings::hrtimer_mode_HRTIMER_MODE_REL,
                    )
                }
            }),
            deadline: Atomic::new(0),
        })
    }
}

impl RequestTimer for Timer {}

impl Timer {
    #[inline]
    pub(super) fn deadline(&self) -> i64 {
        self.deadline.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_deadline(&self, deadline: i64) {
        self.deadline.store(deadline, Relaxed);
    }

    /// Starts the timer at `this`, which expires after `delay`, at once if that is negative.
    ///
    /// # Safety
    ///
    /// `this` points to a timer that is not running, and what its callback requires holds from now
    /// on.
    #[inline]
    pub(super) unsafe fn start(this: *const Self, delay: Delta) {
        // SAFETY: By the safety requirement, for the field projection.
        let timer = Opaque::cast_into(unsafe { &raw const (*this).inner });
        // C adds the delay to the time of now, and takes a sum that is less for an overflow: it
        // would never expire.
        let delay = delay.as_nanos().max(0);
        // SAFETY: By the safety requirements. The callback may run before this returns; then the
        // timer is still allocated, because dropping it waits for C to be done with it.
        unsafe {
            bindings::hrtimer_start_range_ns(
                timer,
                delay,
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_REL,
            )
        };
    }
}

#[pinned_drop]
impl PinnedDrop for Timer {
    fn drop(self: Pin<&mut Self>) {
        // A request that goes is not in flight, so the timer does not run; but the callback that
        // ended the last I/O may not have returned yet.
        //
        // SAFETY: By the type invariant.
        unsafe { bindings::hrtimer_cancel(self.inner.get()) };
    }
}
