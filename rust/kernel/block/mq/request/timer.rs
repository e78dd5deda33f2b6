// SPDX-License-Identifier: GPL-2.0

//! The timer inside a request.
//!
//! It is set up once with the request, and gone only when its callback has returned. The kernel
//! crate's own `HrTimer` takes an owning pointer, which a request is not.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::Delta,
    types::Opaque, //
};

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
/// and they can wait in a [`DelayQueue`](super::super::DelayQueue).
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
    pub(in super::super) fn deadline(&self) -> i64 {
        self.deadline.load(Relaxed)
    }

    #[inline]
    pub(in super::super) fn set_deadline(&self, deadline: i64) {
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
