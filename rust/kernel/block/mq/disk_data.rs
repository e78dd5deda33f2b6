// SPDX-License-Identifier: GPL-2.0

//! What C's queue of a disk points to: the driver's data of the disk, next to a timer.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use super::{
    queue_update::QueueUpdate,
    Operations, //
};
use crate::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::Delta,
    types::Opaque, //
};
use core::{
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    },
};

/// The function that C calls when the timer expires.
pub(super) type Callback =
    unsafe extern "C" fn(*mut bindings::hrtimer) -> bindings::hrtimer_restart;

/// The driver's data of a disk, with the timer behind [`Operations::queue_timer_expired`].
///
/// # Invariants
///
/// `timer` is set up by `hrtimer_setup`. While it runs, `queue` points to a queue that is valid,
/// and was made with this. `queue_update` is that of the tag set of the disk.
// The data comes first, so that a pointer to all of it is one to the data.
#[repr(C)]
#[pin_data(PinnedDrop)]
pub(crate) struct DiskData<T: Operations> {
    #[pin]
    data: T::QueueData,
    queue_update: Arc<QueueUpdate>,
    /// Whether nothing stops the hardware queues any more.
    stop_disabled: Atomic<bool>,
    queue: Atomic<*mut bindings::request_queue>,
    #[pin]
    timer: Opaque<bindings::hrtimer>,
}

// SAFETY: C's timer belongs to no thread, and the driver's data is `Send`.
unsafe impl<T: Operations> Send for DiskData<T> {}

// SAFETY: C locks the timer, and the driver's data is `Sync`.
unsafe impl<T: Operations> Sync for DiskData<T> {}

impl<T: Operations> DiskData<T> {
    pub(super) fn new(
        callback: Callback,
        queue_update: Arc<QueueUpdate>,
        data: impl PinInit<T::QueueData, Error>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            data <- data,
            queue_update,
            stop_disabled: Atomic::new(false),
            queue: Atomic::new(ptr::null_mut()),
            // INVARIANT: Set up here, and not running.
            timer <- Opaque::ffi_init(|slot| {
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
        }? Error)
    }

    /// What `queue` was made with.
    ///
    /// # Safety
    ///
    /// `queue` is valid, and was made with a `DiskData<T>` that is not dropped for `'a`.
    #[inline]
    pub(super) unsafe fn of_queue<'a>(queue: *const bindings::request_queue) -> &'a Self {
        // SAFETY: By the safety requirement; C does not change the field.
        let data = unsafe { (*queue).queuedata };
        // SAFETY: By the safety requirement, it points to what the queue was made with.
        unsafe { &*data.cast_const().cast() }
    }

    /// The driver's data.
    #[inline]
    pub(crate) fn data(&self) -> &T::QueueData {
        &self.data
    }

    /// What keeps the hardware queues of the disk.
    pub(super) fn queue_update(&self) -> &QueueUpdate {
        &self.queue_update
    }

    /// Whether nothing stops the hardware queues any more.
    pub(super) fn is_stop_disabled(&self) -> bool {
        self.stop_disabled.load(Relaxed)
    }

    /// From the next grace period of RCU on, nothing stops the hardware queues any more.
    pub(super) fn disable_stop(&self) {
        self.stop_disabled.store(true, Relaxed);
    }

    /// Starts the timer, or starts it anew, to expire after `delay`.
    ///
    /// # Safety
    ///
    /// `queue` was made with this. It is valid until [`Self::cancel_timer`] is called, after which
    /// this is not.
    pub(super) unsafe fn start_timer(&self, queue: NonNull<bindings::request_queue>, delay: Delta) {
        // INVARIANT: By the safety requirement. There is but one such queue.
        self.queue.store(queue.as_ptr(), Relaxed);
        // SAFETY: By the type invariant. C locks the timer against its callback, other tasks that
        // start it, and cancelling it.
        unsafe {
            bindings::hrtimer_start_range_ns(
                self.timer.get(),
                delay.as_nanos().max(0),
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_REL,
            )
        };
    }

    /// The queue for which the timer was started that is at `timer`.
    ///
    /// # Safety
    ///
    /// `timer` is the timer in a `DiskData<T>`, and has expired.
    pub(super) unsafe fn queue_of(
        timer: *mut bindings::hrtimer,
    ) -> NonNull<bindings::request_queue> {
        // SAFETY: By the safety requirement, the result is in the same allocation.
        let this = unsafe { timer.byte_sub(offset_of!(Self, timer)) }.cast::<Self>();
        // SAFETY: By the safety requirement, it is a `DiskData<T>`, which is only ever shared.
        let this = unsafe { &*this };
        // SAFETY: By the type invariant, it is valid, hence not null.
        unsafe { NonNull::new_unchecked(this.queue.load(Relaxed)) }
    }

    /// Stops the timer, and waits for its callback.
    pub(crate) fn cancel_timer(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for DiskData<T> {
    fn drop(self: Pin<&mut Self>) {
        // It does not run any more; but on a kernel that checks, C wants to know that it goes.
        self.cancel_timer();
    }
}
