// SPDX-License-Identifier: GPL-2.0

//! A queue that delays all requests by the same time, with one timer.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use super::{
    Operations,
    RequestList,
    Timer, //
};
use crate::{
    bindings,
    late_drop::LateDrop,
    module::this_module,
    module_pin::ModulePin,
    prelude::*,
    static_lock_class,
    sync::SpinLockIrq,
    time::Delta,
    types::Opaque, //
};
use core::mem::offset_of;

/// A queue of requests that are all delayed by the same time, then passed to
/// [`Operations::delay_expired`].
///
/// Requests expire in the order in which they were pushed, so one timer is enough for all of them.
/// A push starts the timer only if the queue was empty. All expired requests are passed on
/// together, but at most 128 at a time, because this runs with interrupts disabled. For a single
/// request, its own timer costs less: [`StartedRequest::delay`](super::StartedRequest::delay). A
/// delay queue per hardware queue belongs in [`Operations::HwData`].
///
/// Dropping the queue waits for `delay_expired` to return, then ends all requests in the queue with
/// [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR). It may be dropped in any context, even by
/// `delay_expired`: where the caller cannot wait, a worker does this later.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::mq::{IoCompletionBatch, DelayQueue, Operations, RequestList, StartedRequest, Timer},
///     prelude::*,
///     time::Delta,
/// };
///
/// fn init_hw_queue<T: Operations<Timer = Timer>>() -> impl PinInit<DelayQueue<T>, Error> {
///     DelayQueue::new(Delta::from_micros(10))
/// }
///
/// fn delay<T: Operations<Timer = Timer>>(queue: &DelayQueue<T>, rq: StartedRequest<T>) {
///     let mut requests = RequestList::new();
///     requests.push_back(rq);
///     queue.push(&mut requests);
/// }
///
/// fn delay_expired<T: Operations>(mut requests: RequestList<T>) {
///     let mut batch = IoCompletionBatch::new();
///     while let Some(rq) = requests.pop_front() {
///         batch.end(rq, Ok(()));
///     }
/// }
/// ```
pub struct DelayQueue<T: Operations<Timer = Timer>> {
    inner: LateDrop<DelayQueueInner<T>>,
}

/// The inner part of a delay queue. Dropping it waits for the timer callback.
///
/// # Invariants
///
/// `timer` is set up by `hrtimer_setup` for [`Self::expired`]. The deadlines in `waiting` never
/// decrease.
#[pin_data(PinnedDrop)]
struct DelayQueueInner<T: Operations<Timer = Timer>> {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    /// The delay in nanoseconds, not negative.
    delay: i64,
    #[pin]
    waiting: SpinLockIrq<DelayedRequests<T>>,
}

/// The maximum number of requests that are passed to `delay_expired` at once.
const MAX_BATCH: usize = 128;

/// The time in nanoseconds after which the timer expires again if more requests have expired.
const RESTART_DELAY: i64 = 20_000;

/// The name of a lock class. It is a `static` to have the same address in each module.
static WAITING_NAME: &CStr = c"DelayQueue::waiting";

/// The delayed requests, ordered by deadline.
struct DelayedRequests<T: Operations> {
    requests: RequestList<T>,
    /// Whether the timer is pending: it was started, and its callback has not found the list empty
    /// since then.
    armed: bool,
}

// SAFETY: C's timer is not bound to a thread, and the requests are `Send`.
unsafe impl<T: Operations<Timer = Timer>> Send for DelayQueueInner<T> {}

// SAFETY: C synchronises the timer, and a lock protects the requests.
unsafe impl<T: Operations<Timer = Timer>> Sync for DelayQueueInner<T> {}

impl<T: Operations<Timer = Timer>> DelayQueue<T> {
    /// Creates a queue that delays requests by `delay`. A negative delay counts as zero.
    ///
    /// Returns `ENOMEM` if out of memory, `EAGAIN` while the parameters of the module are being
    /// parsed, and `ENOTSUPP` in a module for a kernel without sysfs or Tasks RCU.
    pub fn new(delay: Delta) -> Result<Self> {
        const_assert!(T::HAS_DELAY_EXPIRED);
        let pin = ModulePin::new(this_module::<T::OwnerModule>())?;
        let inner = LateDrop::new(pin, DelayQueueInner::new(delay), GFP_KERNEL)?;
        Ok(Self { inner })
    }

    /// Appends all of `requests`, whose delay starts now.
    ///
    /// Pushing several requests at once costs less than one by one.
    pub fn push(&self, requests: &mut RequestList<T>) {
        if !requests.is_empty() {
            self.inner.push(requests);
        }
    }
}

impl<T: Operations<Timer = Timer>> DelayQueueInner<T> {
    fn new(delay: Delta) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
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
            // INVARIANT: The list is empty, so it has no deadlines.
            waiting <- SpinLockIrq::new(
                DelayedRequests {
                    requests: RequestList::new(),
                    armed: false,
                },
                WAITING_NAME,
                static_lock_class!(),
            ),
        }? Error)
    }

    /// Appends all of `requests`, which must not be empty.
    fn push(&self, requests: &mut RequestList<T>) {
        let mut waiting = self.waiting.lock();
        // INVARIANT: The clock is read under the lock, and is monotonic.
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

    /// Starts the timer, which expires at `deadline`.
    ///
    /// The caller holds the lock, or nothing else can start the timer. Otherwise a later deadline
    /// could replace an earlier one.
    fn start(&self, deadline: i64) {
        // SAFETY: By the type invariant. C synchronises the timer with its callback.
        unsafe {
            bindings::hrtimer_start_range_ns(
                self.timer.get(),
                deadline,
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_ABS,
            )
        };
    }

    /// Takes expired requests, and starts the timer for the next deadline. The second value is true
    /// if more requests may have expired; in that case the timer has not been started.
    fn take_due(&self) -> (RequestList<T>, bool) {
        let mut due = RequestList::new();
        let mut waiting = self.waiting.lock();
        let now = now();
        for _ in 0..MAX_BATCH {
            let Some(deadline) = waiting.requests.front().map(|rq| rq.timer().deadline()) else {
                waiting.armed = false;
                return (due, false);
            };
            if deadline > now {
                self.start(deadline);
                return (due, false);
            }
            if let Some(rq) = waiting.requests.pop_front() {
                due.push_back(rq);
            }
        }
        (due, true)
    }

    /// # Safety
    ///
    /// Must be called by C for the timer in a `DelayQueueInner<T>`.
    unsafe extern "C" fn expired(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: By the safety requirement, the result is in the same allocation.
        let this = unsafe { timer.byte_sub(offset_of!(Self, timer)) }.cast::<Self>();
        // SAFETY: Dropping the queue waits for this callback to return. This callback does not drop
        // it, as a drop in an interrupt is deferred to a worker.
        let this = unsafe { &*this };
        let (due, more) = this.take_due();
        T::delay_expired(due);
        if more {
            // The rest is handled by another interrupt, so that the CPU can do other work in
            // between. Nothing else starts the timer, because `armed` is set.
            this.start(now().saturating_add(RESTART_DELAY));
        }
        // If the timer is to expire again, it was already started.
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}

#[pinned_drop]
impl<T: Operations<Timer = Timer>> PinnedDrop for DelayQueueInner<T> {
    fn drop(self: Pin<&mut Self>) {
        // Only the callback can still start the timer, and this waits for the callback.
        //
        // SAFETY: By the type invariant.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }
}

/// Returns the time in nanoseconds on the monotonic clock, which the timers use.
#[inline]
fn now() -> i64 {
    // SAFETY: The function may be called in any context but NMI.
    unsafe { bindings::ktime_get() }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
