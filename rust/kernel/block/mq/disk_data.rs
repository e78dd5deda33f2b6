// SPDX-License-Identifier: GPL-2.0

//! The data of a request queue: that of the driver, next to a timer.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use super::{
    queue_update::QueueUpdate,
    Operations, //
};
use crate::{
    bindings,
    dma::bound::DmaDevice,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu,
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

/// The timer callback.
pub(super) type Callback =
    unsafe extern "C" fn(*mut bindings::hrtimer) -> bindings::hrtimer_restart;

/// The driver's data of a disk, or of a [`PassthroughQueue`](super::PassthroughQueue), with the
/// timer for [`Operations::queue_timer_expired`]: C's `queuedata`.
///
/// # Invariants
///
/// `timer` is set up by `hrtimer_setup`. While it is active, `queue` points to a valid queue that
/// was allocated with this data. `queue_update` is that of the tag set of the queue.
// `data` is the first field, so that a pointer to this struct is also a pointer to `data`.
#[repr(C)]
#[pin_data(PinnedDrop)]
pub(crate) struct DiskData<T: Operations> {
    #[pin]
    data: T::QueueData,
    queue_update: Arc<QueueUpdate>,
    /// The device that the memory of requests is mapped for.
    dma_device: Option<Arc<DmaDevice>>,
    /// Whether `RequestQueue::stop` is disabled.
    stop_disabled: Atomic<bool>,
    /// How often the queue is quiesced because its tag set is. Protected by the lock of the queue.
    quiesce_depth: Opaque<c_uint>,
    queue: Atomic<*mut bindings::request_queue>,
    #[pin]
    timer: Opaque<bindings::hrtimer>,
}

// SAFETY: C's timer is not bound to a thread, and the driver's data is `Send`.
unsafe impl<T: Operations> Send for DiskData<T> {}

// SAFETY: C synchronises the timer, and the driver's data is `Sync`.
unsafe impl<T: Operations> Sync for DiskData<T> {}

impl<T: Operations> DiskData<T> {
    pub(super) fn new(
        callback: Callback,
        queue_update: Arc<QueueUpdate>,
        dma_device: Option<Arc<DmaDevice>>,
        data: impl PinInit<T::QueueData, Error>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            data <- data,
            queue_update,
            dma_device,
            stop_disabled: Atomic::new(false),
            quiesce_depth: Opaque::new(0),
            queue: Atomic::new(ptr::null_mut()),
            // INVARIANT: Set up here, and not active.
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

    /// Returns the data that `queue` was allocated with.
    ///
    /// # Safety
    ///
    /// `queue` is valid, and was allocated with a `DiskData<T>` that is not dropped for `'a`.
    #[inline]
    pub(crate) unsafe fn of_queue<'a>(queue: *const bindings::request_queue) -> &'a Self {
        // SAFETY: By the safety requirement. C does not change the field.
        let data = unsafe { (*queue).queuedata };
        // SAFETY: By the safety requirement, it points to the data that the queue was allocated
        // with.
        unsafe { &*data.cast_const().cast() }
    }

    /// Returns the driver's data.
    #[inline]
    pub(crate) fn data(&self) -> &T::QueueData {
        &self.data
    }

    /// Returns the device that the memory of requests is mapped for.
    #[inline]
    pub(super) fn dma_device(&self) -> Option<&DmaDevice> {
        self.dma_device.as_deref()
    }

    /// Returns the protection of the disk's hardware queues against updates.
    pub(super) fn queue_update(&self) -> &QueueUpdate {
        &self.queue_update
    }

    /// Returns whether `RequestQueue::stop` is disabled.
    pub(super) fn is_stop_disabled(&self) -> bool {
        self.stop_disabled.load(Relaxed)
    }

    /// Disables `RequestQueue::stop`, with effect after the next RCU grace period.
    pub(super) fn disable_stop(&self) {
        self.stop_disabled.store(true, Relaxed);
    }

    /// Returns how often the queue is quiesced because its tag set is.
    pub(super) fn quiesce_depth(&self) -> *mut c_uint {
        self.quiesce_depth.get()
    }

    /// Starts or restarts the timer, which expires after `delay`.
    ///
    /// # Safety
    ///
    /// `queue` was allocated with this data. It is valid until [`Self::cancel_timer`] is called.
    /// This function is not called after that.
    pub(super) unsafe fn start_timer(&self, queue: NonNull<bindings::request_queue>, delay: Delta) {
        // INVARIANT: By the safety requirement. Only one queue was allocated with this data.
        self.queue.store(queue.as_ptr(), Relaxed);
        // SAFETY: By the type invariant. C synchronises this with the timer callback, with other
        // tasks that start the timer, and with cancelling it.
        unsafe {
            bindings::hrtimer_start_range_ns(
                self.timer.get(),
                delay.as_nanos().max(0),
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_REL,
            )
        };
    }

    /// Returns the queue for which the timer at `timer` was started.
    ///
    /// # Safety
    ///
    /// `timer` is the timer in a `DiskData<T>`, and it has expired.
    pub(super) unsafe fn queue_of(
        timer: *mut bindings::hrtimer,
    ) -> NonNull<bindings::request_queue> {
        // SAFETY: By the safety requirement, the result is in the same allocation.
        let this = unsafe { timer.byte_sub(offset_of!(Self, timer)) }.cast::<Self>();
        // SAFETY: By the safety requirement, it is a `DiskData<T>`, to which only shared references
        // exist.
        let this = unsafe { &*this };
        // SAFETY: By the type invariant, the queue is valid, hence not null.
        unsafe { NonNull::new_unchecked(this.queue.load(Relaxed)) }
    }

    /// Cancels the timer, and waits for its callback.
    pub(crate) fn cancel_timer(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for DiskData<T> {
    fn drop(self: Pin<&mut Self>) {
        // The timer of a disk that was removed is no longer active.
        self.cancel_timer();
        // `QuiesceDepth::apply` may have found the queue before it left the tag set.
        rcu::synchronize_rcu();
    }
}
