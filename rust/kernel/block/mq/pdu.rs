// SPDX-License-Identifier: GPL-2.0

//! The PDU of a request: the driver's part, which follows C's `struct request` in memory.
//!
//! It contains the driver's data and, if the driver requests it, a timer. The timer is set up once,
//! with the request. Dropping it waits for its callback to return. The kernel crate's `HrTimer`
//! requires an owning pointer, which a request is not. It would have to export what a pointer of
//! another kind needs to start a timer, and to find itself in the callback.
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

/// The owner of a request that no [`PendingList`](super::PendingList) owns, and that was not left
/// in flight.
pub(super) const OWNER_HANDLE: u64 = 0;
/// The owner of a request that was left in flight, which has no owner until it times out.
const OWNER_NONE: u64 = 1;

/// The PDU of a request. It is initialised in `init_request` and dropped in `exit_request`, and
/// lives across I/Os.
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

    /// Returns the PDU that contains `timer`.
    ///
    /// # Safety
    ///
    /// `timer` points to the timer in a PDU.
    #[inline]
    pub(super) unsafe fn of_timer(timer: *mut bindings::hrtimer) -> *const Self {
        // SAFETY: By the safety requirement, the result is in the same allocation: by the
        // invariants of `Timer`, C's timer is at its beginning.
        unsafe { timer.cast_const().byte_sub(offset_of!(Self, timer)).cast() }
    }

    /// Returns the driver's data.
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

    /// Gives up ownership of the request until [`Self::try_take`].
    ///
    /// Earlier memory accesses are visible to the CPU that takes the request.
    #[inline]
    pub(super) fn leave_in_flight(&self) {
        self.owner.store(OWNER_NONE, Release);
    }

    /// Takes ownership if the request was given up by [`Self::leave_in_flight`]. Only one caller
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
    /// Returns the timer of the request.
    #[inline]
    pub(super) fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Returns the timer in the PDU at `this`.
    ///
    /// # Safety
    ///
    /// `this` points to a PDU.
    #[inline]
    pub(super) unsafe fn raw_timer(this: *const Self) -> *const Timer {
        // SAFETY: By the safety requirement, for the field projection.
        unsafe { &raw const (*this).timer }
    }
}

/// Returns the size of the PDU in bytes, for C.
pub(super) const fn cmd_size<T: Operations>() -> u32 {
    // C allocates the flush request again whenever the number of queues changes, and cannot handle
    // a failure there. A request with its PDU must therefore fit into a page, as a larger
    // allocation may fail. This limit also keeps it below the 16 pages into which C packs several
    // requests without checking whether one fits.
    const_assert!(size_of::<RequestPdu<T>>() <= PAGE_SIZE - size_of::<bindings::request>());
    size_of::<RequestPdu<T>>() as u32
}

/// The timer callback.
pub(super) type Callback =
    unsafe extern "C" fn(*mut bindings::hrtimer) -> bindings::hrtimer_restart;

/// The operations of a [`RequestTimer`] that drivers cannot call.
pub trait TimerStorage: Sized {
    /// Initialises the timer, which will call `callback`.
    fn new(callback: Callback) -> impl PinInit<Self>;
}

/// Whether requests contain a timer: [`Timer`] or [`NoTimer`].
///
/// # Examples
///
/// ```
/// use kernel::{block::mq::{Operations, StartedRequest, Timer}, time::Delta};
///
/// /// `Operations::timer_expired` of `T` will end the request.
/// fn end_later<T: Operations<Timer = Timer>>(rq: StartedRequest<T>) {
///     rq.delay(Delta::from_micros(10));
/// }
/// ```
pub trait RequestTimer: TimerStorage + 'static {}

/// Requests contain no timer.
pub struct NoTimer(());

impl TimerStorage for NoTimer {
    fn new(_callback: Callback) -> impl PinInit<Self> {
        Self(())
    }
}

impl RequestTimer for NoTimer {}

/// Requests contain a timer, for [`StartedRequest::delay`](super::StartedRequest::delay) and
/// [`DelayQueue`](super::DelayQueue).
///
/// # Invariants
///
/// `inner` is set up by `hrtimer_setup`. It is the first field in memory, as `RequestPdu::of_timer`
/// requires.
#[repr(C)]
#[pin_data(PinnedDrop)]
pub struct Timer {
    #[pin]
    inner: Opaque<bindings::hrtimer>,
    /// The deadline of a request in a `DelayQueue`, in nanoseconds. Only the owner of the request
    /// accesses it.
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

    /// Starts the timer at `this`, which expires after `delay`, or immediately if that is negative.
    ///
    /// # Safety
    ///
    /// `this` points to a timer that is not active, and the safety requirements of its callback
    /// hold from now on.
    #[inline]
    pub(super) unsafe fn start(this: *const Self, delay: Delta) {
        // SAFETY: By the safety requirement, for the field projection.
        let timer = Opaque::cast_into(unsafe { &raw const (*this).inner });
        // C adds the delay to the current time. A negative delay would look like an overflow there,
        // and the timer would never expire.
        let delay = delay.as_nanos().max(0);
        // SAFETY: By the safety requirements. The callback may run before this returns, but the
        // timer is still allocated then, because dropping it waits until C has released it.
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
        // A request that is freed is not in flight, so the timer is not pending. But the callback
        // that ended the last I/O may not have returned yet.
        //
        // SAFETY: By the type invariant.
        unsafe { bindings::hrtimer_cancel(self.inner.get()) };
    }
}
