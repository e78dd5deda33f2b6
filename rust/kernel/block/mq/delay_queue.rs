// SPDX-License-Identifier: GPL-2.0

//! Requests that are all delayed for the same time, by one timer.
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

/// Requests that wait for a time which is the same for all, then go on in
/// [`Operations::delay_expired`].
///
/// Requests expire in the order in which they were pushed, so one timer is enough for all of them.
/// It is started only when the queue is empty. All requests that have expired are passed on
/// together, at most 128 at a time, since this runs with interrupts disabled. For one request alone
/// its own timer costs less: [`StartedRequest::delay`](super::StartedRequest::delay). To have a
/// line for each hardware queue, keep it in [`Operations::HwData`].
///
/// Dropping it ends all requests in it with [`BlkStatus::IOERR`](crate::block::BlkStatus::IOERR),
/// after waiting for `delay_expired` to return. It may be dropped anywhere, also by
/// `delay_expired`: where waiting is impossible, a worker does that a little later.
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
/// fn later<T: Operations<Timer = Timer>>(line: &DelayQueue<T>, rq: StartedRequest<T>) {
///     let mut requests = RequestList::new();
///     requests.push_back(rq);
///     line.push(&mut requests);
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

/// A line, whose drop waits for its timer.
///
/// # Invariants
///
/// `timer` is set up by `hrtimer_setup` for [`Self::expired`]. The deadlines in `waiting` never
/// decrease.
#[pin_data(PinnedDrop)]
struct DelayQueueInner<T: Operations<Timer = Timer>> {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    /// In nanoseconds, not negative.
    delay: i64,
    #[pin]
    waiting: SpinLockIrq<DelayedRequests<T>>,
}

/// How many requests are due at once at most.
const MAX_BATCH: usize = 128;

/// For how long a timer leaves the CPU alone, in nanoseconds, before it comes with more.
const RESTART_DELAY: i64 = 20_000;

/// The name of a lock class, which has one address, as that of tag sets.
static WAITING_NAME: &CStr = c"DelayQueue::waiting";

/// The requests that wait, the first to be due in front.
struct DelayedRequests<T: Operations> {
    requests: RequestList<T>,
    /// Whether the timer will look at them: it was started, and its callback has not found the list
    /// empty since.
    armed: bool,
}

// SAFETY: C's timer belongs to no thread, and the requests are `Send`.
unsafe impl<T: Operations<Timer = Timer>> Send for DelayQueueInner<T> {}

// SAFETY: C locks the timer, and the requests are under a lock.
unsafe impl<T: Operations<Timer = Timer>> Sync for DelayQueueInner<T> {}

impl<T: Operations<Timer = Timer>> DelayQueue<T> {
    /// Makes one in which requests wait for `delay`, or not at all if that is negative.
    ///
    /// Fails with `ENOMEM` if out of memory, `EAGAIN` while the parameters of the module are
    /// being parsed, `ENOTSUPP` in a module for a kernel without sysfs.
    pub fn new(delay: Delta) -> Result<Self> {
        const_assert!(T::HAS_DELAY_EXPIRED);
        let pin = ModulePin::new(this_module::<T::OwnerModule>())?;
        let inner = LateDrop::new(pin, DelayQueueInner::new(delay), GFP_KERNEL)?;
        Ok(Self { inner })
    }

    /// Takes all of `requests`, whose time begins now.
    ///
    /// Taking several at once costs less than one by one.
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
            // INVARIANT: There is no deadline yet.
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

    /// Takes all of `requests`, of which there is one at least.
    fn push(&self, requests: &mut RequestList<T>) {
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
    /// The lock is held, or nothing else starts it: so one deadline does not overtake another.
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

    /// Takes requests that are due, and sees to those that are not. Also returns whether there may
    /// be more that are due, for which the timer is not started yet.
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
    /// C calls it for the timer in a `DelayQueueInner<T>`.
    unsafe extern "C" fn expired(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: By the safety requirement, the result is in the same allocation.
        let this = unsafe { timer.byte_sub(offset_of!(Self, timer)) }.cast::<Self>();
        // SAFETY: Dropping the line waits for this to return; this does not drop it, as a drop in
        // an interrupt is left to a worker.
        let this = unsafe { &*this };
        let (due, more) = this.take_due();
        T::delay_expired(due);
        if more {
            // Only after the interrupt, so that the CPU gets to something else. Nothing else starts
            // the timer, as it counts as armed.
            this.start(now().saturating_add(RESTART_DELAY));
        }
        // If it is to expire again, it has been started.
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}

#[pinned_drop]
impl<T: Operations<Timer = Timer>> PinnedDrop for DelayQueueInner<T> {
    fn drop(self: Pin<&mut Self>) {
        // Only its callback can still start it, and this waits for that.
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

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
