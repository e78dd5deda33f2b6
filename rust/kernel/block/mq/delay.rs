// SPDX-License-Identifier: GPL-2.0

//! Requests that all wait for the same time, behind one timer.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use super::{
    Operations,
    RequestList,
    Timer, //
};
use crate::{
    bindings,
    prelude::*,
    static_lock_class,
    sync::SpinLockIrq,
    time::Delta,
    types::Opaque, //
};
use core::mem::offset_of;

/// Requests that wait for a time which is the same for all, then go on in [`Operations::due`].
///
/// The first to come is the first to be due, so one timer does for any number of them. It is
/// started only when nobody waits yet, and all that are due go on together. For one request alone
/// its own timer costs less: [`Started::delay`](super::Started::delay). To have a line for each
/// hardware queue, keep it in [`Operations::HwData`].
///
/// Dropping it ends all requests in it with [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR).
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::mq::{Batch, DelayLine, Operations, RequestList, Started, Timer},
///     prelude::*,
///     time::Delta,
/// };
///
/// fn init_hw_queue<T: Operations<Timer = Timer>>() -> impl PinInit<DelayLine<T>> {
///     DelayLine::new(Delta::from_micros(10))
/// }
///
/// fn later<T: Operations<Timer = Timer>>(line: &DelayLine<T>, rq: Started<T>) {
///     let mut requests = RequestList::new();
///     requests.push_back(rq);
///     line.push(&mut requests);
/// }
///
/// fn due<T: Operations>(mut requests: RequestList<T>) {
///     let mut batch = Batch::new();
///     while let Some(rq) = requests.pop_front() {
///         batch.end(rq, Ok(()));
///     }
/// }
/// ```
///
/// # Invariants
///
/// `timer` is set up by `hrtimer_setup` for [`Self::expired`]. The deadlines in `waiting` never
/// decrease.
#[pin_data(PinnedDrop)]
pub struct DelayLine<T: Operations<Timer = Timer>> {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    /// In nanoseconds, not negative.
    delay: i64,
    #[pin]
    waiting: SpinLockIrq<Waiting<T>>,
}

/// The name of a lock class, which has one address, as that of tag sets.
static WAITING_NAME: &CStr = c"DelayLine::waiting";

/// The requests that wait, the first to be due in front.
struct Waiting<T: Operations> {
    requests: RequestList<T>,
    /// Whether the timer will look at them: it was started, and its callback has not found the list
    /// empty since.
    armed: bool,
}

// SAFETY: C's timer belongs to no thread, and the requests are `Send`.
unsafe impl<T: Operations<Timer = Timer>> Send for DelayLine<T> {}

// SAFETY: C locks the timer, and the requests are under a lock.
unsafe impl<T: Operations<Timer = Timer>> Sync for DelayLine<T> {}

impl<T: Operations<Timer = Timer>> DelayLine<T> {
    /// Makes one in which requests wait for `delay`, or not at all if that is negative.
    pub fn new(delay: Delta) -> impl PinInit<Self> {
        const_assert!(T::HAS_DUE);
        pin_init!(Self {
            // INVARIANT: Set up here.
            timer <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid, and is pinned until `Drop` has cancelled the timer.
                unsafe {
                    bindings::hrtimer_setup(
                        slot,
                        Some(Self::expired),
                        bindings::CLOCK_MONOTONIC as bindings::clockid_t,
                        bindings::hrtimer_mode_HRTIMER_MODE_ABS,
                    )
                }
            }),
            delay: delay.as_nanos().max(0),
            // INVARIANT: There is no deadline yet.
            waiting <- SpinLockIrq::new(
                Waiting {
                    requests: RequestList::new(),
                    armed: false,
                },
                WAITING_NAME,
                static_lock_class!(),
            ),
        })
    }

    /// Takes all of `requests`, whose time begins now.
    ///
    /// Taking several at once costs less than one by one.
    pub fn push(&self, requests: &mut RequestList<T>) {
        if requests.is_empty() {
            return;
        }
        let mut waiting = self.waiting.lock();
        // INVARIANT: The clock is read under the lock, and never goes back.
        let deadline = now().saturating_add(self.delay);
        while let Some(rq) = requests.pop_front() {
            rq.timer().set_deadline(deadline);
            waiting.requests.push_back(rq);
        }
        if !waiting.armed {
            waiting.armed = true;
            self.start(deadline);
        }
    }

    /// Has the timer expire at `deadline`.
    ///
    /// The lock is held, so one deadline does not overtake another.
    fn start(&self, deadline: i64) {
        // SAFETY: By the type invariant. C locks the timer against its callback.
        unsafe {
            bindings::hrtimer_start_range_ns(
                self.timer.get(),
                deadline,
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_ABS,
            )
        };
    }

    /// Takes the requests that are due, and sees to those that are not.
    fn take_due(&self) -> RequestList<T> {
        let mut due = RequestList::new();
        let mut waiting = self.waiting.lock();
        let now = now();
        while let Some(deadline) = waiting.requests.front().map(|rq| rq.timer().deadline()) {
            if deadline > now {
                self.start(deadline);
                return due;
            }
            if let Some(rq) = waiting.requests.pop_front() {
                due.push_back(rq);
            }
        }
        waiting.armed = false;
        due
    }

    /// # Safety
    ///
    /// C calls it for the timer in a `DelayLine<T>`, which is not dropped before this returns.
    unsafe extern "C" fn expired(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: By the safety requirement, the result is in the same allocation, and valid.
        let this = unsafe { &*timer.byte_sub(offset_of!(Self, timer)).cast::<Self>() };
        T::due(this.take_due());
        // If it is to expire again, `take_due` has started it.
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}

#[pinned_drop]
impl<T: Operations<Timer = Timer>> PinnedDrop for DelayLine<T> {
    fn drop(self: Pin<&mut Self>) {
        // Nobody can start it any more but its callback, which this waits for.
        //
        // SAFETY: By the type invariant.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }
}

/// The time in nanoseconds on the clock of the timers.
#[inline]
fn now() -> i64 {
    // SAFETY: The function may be called anywhere but in an NMI.
    unsafe { bindings::ktime_get() }
}
