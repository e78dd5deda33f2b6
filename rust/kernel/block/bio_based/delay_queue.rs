// SPDX-License-Identifier: GPL-2.0

//! A queue that ends all bios after the same delay, with one timer.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use super::{
    handle::{
        end_kept,
        RawBio, //
    },
    Operations,
    OwnedBio, //
};
use crate::{
    alloc::Flags,
    bindings,
    block::{
        BlkResult,
        BlkStatus, //
    },
    late_drop::LateDrop,
    module::this_module,
    module_pin::ModulePin,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    static_lock_class,
    sync::SpinLockIrq,
    time::Delta,
    types::Opaque, //
};
use core::{
    marker::PhantomData,
    mem::{
        offset_of,
        ManuallyDrop, //
    },
};

/// A queue of bios that are served, and that end when a delay has passed.
///
/// Bios expire in the order in which they were pushed, so one timer is enough for all of them. The
/// timer ends them in hardirq context, at most 128 at a time. A bio has no room for its deadline,
/// as its submitter may use all of it again when it has ended. So each takes memory.
///
/// Dropping the queue ends all bios in it with [`BlkStatus::IOERR`]. It may be dropped in any
/// context: where the caller cannot wait for the timer, a worker does this later.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::{bio_based::{DelayQueue, Operations, SubmittedBio}, gendisk::*, Sectors},
///     prelude::*,
///     sync::static_lock_class,
///     time::Delta,
/// };
///
/// struct Slow;
///
/// #[vtable]
/// impl Operations for Slow {
///     type QueueData = DelayQueue<Self>;
///
///     fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
///         let (queue, flags) = (bio.queue_data(), bio.gfp());
///         if let Err(bio) = queue.end_later(bio.keep(), Ok(()), flags) {
///             bio.end(Ok(()));
///         }
///     }
/// }
///
/// let disk: GenDisk<Slow, Bios> = GenDiskBuilder::bio_based(static_lock_class!())
///     .capacity(Sectors::from_mebibytes(1))
///     .build(c"rust_slow_doc", DelayQueue::new(Delta::from_micros(10)))?
///     .add()?;
/// # Ok::<(), Error>(())
/// ```
pub struct DelayQueue<T: Operations> {
    inner: LateDrop<DelayQueueInner>,
    _driver: PhantomData<fn(T)>,
}

/// The inner part of a delay queue. Dropping it waits for the timer callback.
///
/// # Invariants
///
/// `timer` is set up by `hrtimer_setup` for [`Self::expired`]. The deadlines in `waiting` never
/// decrease.
#[pin_data(PinnedDrop)]
struct DelayQueueInner {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    /// The delay in nanoseconds, not negative.
    delay: i64,
    #[pin]
    waiting: SpinLockIrq<DelayedBios>,
}

// SAFETY: C's timer is not bound to a thread, and the bios are `Send`.
unsafe impl Send for DelayQueueInner {}

// SAFETY: C synchronises the timer, and a lock protects the bios.
unsafe impl Sync for DelayQueueInner {}

/// The maximum number of bios that one interrupt ends.
const MAX_BATCH: usize = 128;

/// The time in nanoseconds after which the timer expires again if more bios have expired.
const RESTART_DELAY: i64 = 20_000;

/// The name of a lock class. It is a `static` to have the same address in each module.
static WAITING_NAME: &CStr = c"bio_based::DelayQueue::waiting";

/// The delayed bios, ordered by deadline.
struct DelayedBios {
    /// By their deadlines in nanoseconds, and a number that is different for each.
    bios: RBTree<(i64, u64), DelayedBio>,
    /// The number of the next bio.
    next: u64,
    /// Whether the timer is pending: it was started, and its callback has not found the tree empty
    /// since then.
    armed: bool,
}

/// A delayed bio. Dropping it ends it with [`BlkStatus::IOERR`].
///
/// # Invariants
///
/// It owns the bio, and a reference to `q_usage_counter` of its queue.
struct DelayedBio {
    raw: RawBio,
    result: BlkResult,
}

// SAFETY: A bio may be ended by any thread.
unsafe impl Send for DelayedBio {}

impl DelayedBio {
    /// Ends the bio with its result.
    fn end(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: By the type invariant, both are owned, and they are not used after this.
        unsafe { end_kept(RawBio { ..this.raw }, this.result) };
    }
}

impl Drop for DelayedBio {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, both are owned, and they are not used after this.
        unsafe { end_kept(RawBio { ..self.raw }, Err(BlkStatus::IOERR)) };
    }
}

impl DelayedBios {
    /// Appends a bio with the latest deadline.
    fn push(
        &mut self,
        node: RBTreeNodeReservation<(i64, u64), DelayedBio>,
        bio: DelayedBio,
        deadline: i64,
    ) {
        // There is none with this number.
        drop(self.bios.insert(node.into_node((deadline, self.next), bio)));
        self.next = self.next.wrapping_add(1);
    }

    /// Returns the deadline of the first bio.
    fn deadline(&self) -> Option<i64> {
        let (&(deadline, _), _) = self.bios.cursor_front().as_ref()?.current();
        Some(deadline)
    }

    /// Removes the first bio.
    fn pop(&mut self) -> Option<DelayedBio> {
        let (_, node) = self.bios.cursor_front_mut()?.remove_current();
        Some(node.to_key_value().1)
    }
}

impl<T: Operations> DelayQueue<T> {
    /// Creates a queue that ends bios after `delay`. A negative delay counts as zero.
    ///
    /// Returns `ENOMEM` if out of memory, `EAGAIN` while the parameters of the module are being
    /// parsed, and `ENOTSUPP` in a module for a kernel without sysfs or Tasks RCU.
    pub fn new(delay: Delta) -> Result<Self> {
        let pin = ModulePin::new(this_module::<T::OwnerModule>())?;
        let inner = LateDrop::new(pin, DelayQueueInner::new(delay), GFP_KERNEL)?;
        Ok(Self {
            inner,
            _driver: PhantomData,
        })
    }

    /// Ends a bio with `result` after the delay, which starts now. Memory is allocated with
    /// `flags`.
    ///
    /// # Errors
    ///
    /// The bio comes back if there is no memory.
    pub fn end_later(
        &self,
        bio: OwnedBio<T>,
        result: BlkResult,
        flags: Flags,
    ) -> Result<(), OwnedBio<T>> {
        let Ok(node) = RBTreeNodeReservation::new(flags) else {
            return Err(bio);
        };
        // INVARIANT: `into_inner` passes on the ownership of both.
        let raw = bio.into_inner();
        self.inner.push(node, DelayedBio { raw, result });
        Ok(())
    }
}

impl DelayQueueInner {
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
            // INVARIANT: The tree is empty, so it has no deadlines.
            waiting <- SpinLockIrq::new(
                DelayedBios { bios: RBTree::new(), next: 0, armed: false },
                WAITING_NAME,
                static_lock_class!(),
            ),
        }? Error)
    }

    /// Appends a bio.
    fn push(&self, node: RBTreeNodeReservation<(i64, u64), DelayedBio>, bio: DelayedBio) {
        let mut waiting = self.waiting.lock();
        // INVARIANT: The clock is read under the lock, and is monotonic.
        let deadline = now().saturating_add(self.delay);
        waiting.push(node, bio, deadline);
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

    /// Takes a bio that has expired, by `now`. If there is none, starts the timer for the next
    /// deadline.
    fn take_due(&self, now: i64) -> Option<DelayedBio> {
        let mut waiting = self.waiting.lock();
        let Some(deadline) = waiting.deadline() else {
            waiting.armed = false;
            return None;
        };
        if deadline > now {
            self.start(deadline);
            return None;
        }
        waiting.pop()
    }

    /// # Safety
    ///
    /// Must be called by C for the timer in a `DelayQueueInner`.
    unsafe extern "C" fn expired(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: By the safety requirement, the result is in the same allocation.
        let this = unsafe { timer.byte_sub(offset_of!(Self, timer)) }.cast::<Self>();
        // SAFETY: Dropping the queue waits for this callback to return.
        let this = unsafe { &*this };
        let now = now();
        for _ in 0..MAX_BATCH {
            let Some(bio) = this.take_due(now) else {
                // If the timer is to expire again, it was already started.
                return bindings::hrtimer_restart::HRTIMER_NORESTART;
            };
            bio.end();
        }
        // The rest is handled by another interrupt, so that the CPU can do other work in between.
        // Nothing else starts the timer, because `armed` is set.
        this.start(now.saturating_add(RESTART_DELAY));
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}

#[pinned_drop]
impl PinnedDrop for DelayQueueInner {
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
