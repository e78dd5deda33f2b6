// SPDX-License-Identifier: GPL-2.0

//! A disk that lets no I/O in for a while.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use crate::{
    bindings,
    late_drop::{
        self,
        LateDrop, //
    },
    module_pin::ModulePin,
    prelude::*,
    time::{
        msecs_to_jiffies,
        Delta,
        Jiffies, //
    }, //
};
use core::ptr::NonNull;

/// A disk that is frozen: it accepts no I/O until this is dropped.
///
/// I/O that is submitted meanwhile waits, as do tasks that allocate a passthrough request. What the
/// disk has accepted before goes on, and [`Self::wait`] waits for it.
///
/// A disk can be frozen more than once; it accepts I/O when the last of these is dropped. This may
/// be dropped by any task, in any context, and outlive the disk. If it is leaked, I/O waits until
/// the disk is dead or removed.
///
/// If the kernel cannot tell that the caller may sleep, as without `CONFIG_PREEMPT_COUNT`, a worker
/// lets I/O in a little later; to start a worker may need memory. [`Self::unfreeze`] needs neither.
///
/// To drop the disk writes back what its block device has in memory, unless it is dead. So a task
/// must drop this before it drops the disk, or call [`mark_dead`]. To reclaim memory may need I/O
/// of the disk, so a task that keeps it frozen should allocate in a
/// [NOIO scope](crate::block::mq::memalloc_noio).
///
/// [`mark_dead`]: super::GenDisk::mark_dead
///
/// # Examples
///
/// A command that changes what the blocks of a disk are, so that no I/O may have been made for the
/// old ones:
///
/// ```
/// use kernel::{block::{gendisk::GenDisk, mq::Operations}, prelude::*};
///
/// fn format<T: Operations>(disk: &GenDisk<T>, format: impl FnOnce() -> Result) -> Result {
///     let frozen = disk.freeze_start()?;
///     frozen.wait()?;
///     format()?;
///     // I/O that waits fails.
///     disk.mark_dead()?;
///     frozen.unfreeze();
///     Ok(())
/// }
/// ```
#[must_use = "I/O goes on when this is dropped"]
pub struct Frozen {
    queue: LateDrop<Queue>,
}

/// A queue that is frozen.
///
/// # Invariants
///
/// It owns a reference to the queue, and one count of its freeze depth.
struct Queue {
    queue: NonNull<bindings::request_queue>,
}

// SAFETY: Any task may wait for a queue that is frozen, or unfreeze it.
unsafe impl Send for Queue {}

// SAFETY: As above.
unsafe impl Sync for Queue {}

impl Drop for Queue {
    fn drop(&mut self) {
        let queue = self.queue.as_ptr();
        // SAFETY: By the type invariant, the queue was frozen without an owner. The caller may
        // sleep, as this is in a `LateDrop`.
        unsafe { bindings::blk_mq_unfreeze_queue_non_owner(queue) };
        // SAFETY: By the type invariant. The caller may sleep.
        unsafe { bindings::blk_put_queue(queue) };
    }
}

impl Frozen {
    /// Begins to freeze a disk: the [`Self::wait`] of the caller does the rest.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the disk is dead; `ENOMEM` if out of memory.
    ///
    /// # Safety
    ///
    /// The queue is that of a disk that was added. The number of its hardware queues does not
    /// change during this call. The caller may sleep.
    pub(super) unsafe fn start(queue: NonNull<bindings::request_queue>) -> Result<Self> {
        let freeze = || {
            // SAFETY: By the safety requirement.
            if !unsafe { bindings::blk_get_queue(queue.as_ptr()) } {
                return Err(ENODEV);
            }
            // SAFETY: As above. This runs the hardware queues, whose number does not change.
            unsafe { bindings::blk_freeze_queue_start_non_owner(queue.as_ptr()) };
            Ok(queue)
        };
        // To reclaim memory may need I/O of the disk, so there is memory before it is frozen.
        //
        // INVARIANT: The closure takes the reference and the count.
        let queue = try_init!(Queue { queue: freeze()? }? Error);
        let pin = ModulePin::of_this_code()?;
        Ok(Self {
            queue: LateDrop::new(pin, queue, GFP_KERNEL)?,
        })
    }

    /// Waits until all I/O that the disk has accepted has ended, and all passthrough requests were
    /// dropped.
    ///
    /// So the caller must not have one of these, nor a lock that is needed to end one.
    ///
    /// # Errors
    ///
    /// `EDEADLK` in a callback of the block layer, or in another context that cannot wait for I/O.
    pub fn wait(&self) -> Result {
        late_drop::check_may_wait()?;
        // SAFETY: By the type invariant of `Queue`. The caller may sleep, as checked.
        unsafe { bindings::blk_mq_freeze_queue_wait(self.queue.queue.as_ptr()) };
        Ok(())
    }

    /// Does what [`Self::wait`] does for so long at most. Returns whether all of that has ended.
    ///
    /// # Errors
    ///
    /// As [`Self::wait`].
    pub fn wait_timeout(&self, limit: Delta) -> Result<bool> {
        late_drop::check_may_wait()?;
        // C returns what is left as an `int`.
        const MAX: i64 = i32::MAX as i64;
        let milliseconds = limit.as_millis().clamp(0, MAX) as u32;
        let jiffies = msecs_to_jiffies(milliseconds).min(MAX as Jiffies);
        // SAFETY: By the type invariant of `Queue`. The caller may sleep, as checked.
        let left = unsafe {
            bindings::blk_mq_freeze_queue_wait_timeout(self.queue.queue.as_ptr(), jiffies)
        };
        Ok(left > 0)
    }

    /// Drops this without a worker, so that I/O is let in before this returns if nothing else keeps
    /// the disk frozen.
    ///
    /// The caller can sleep; a worker does it if the caller certainly cannot.
    pub fn unfreeze(self) {
        self.queue.drop_here();
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
