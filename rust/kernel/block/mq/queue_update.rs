// SPDX-License-Identifier: GPL-2.0

//! Keeps the hardware queues of a disk while a CPU walks them.
//!
//! When the number of queues changes, C takes each queue of each disk down and makes it again. If
//! it has to fall back to the old number, it makes a queue anew out of one it has taken down a
//! moment ago; if that fails because it is out of memory, it frees it at once, although the disk
//! has still a pointer to it. No request notices, since the disk is frozen. But the queues may be
//! stopped or started from a timer.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use crate::{
    bindings,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        rcu,
        MutexGuard, //
    },
};
use core::ptr::NonNull;

/// Whether the hardware queues of the disks on a tag set are being replaced.
///
/// # Invariants
///
/// The queues of a disk that is not in use may be replaced only while `in_progress`, and after a
/// grace period of RCU since. Those of a disk that is in use are not replaced.
pub(super) struct QueueUpdate {
    in_progress: Atomic<bool>,
}

impl QueueUpdate {
    pub(super) fn new() -> Self {
        // INVARIANT: They are not being replaced.
        Self {
            in_progress: Atomic::new(false),
        }
    }

    /// Waits until no CPU walks the queues of a disk that is not in use, so that C may replace them
    /// until the guard is dropped.
    ///
    /// May sleep. `_resize` is the lock that all callers hold: the first of two overlapping updates
    /// to end would end the other one, too.
    pub(super) fn begin<'a>(&'a self, _resize: &'a MutexGuard<'_, ()>) -> UpdateGuard<'a> {
        self.in_progress.store(true, Relaxed);
        rcu::synchronize_rcu();
        UpdateGuard(self)
    }

    /// Runs `f`, which walks the hardware queues of `queue`, unless they may be replaced meanwhile:
    /// an update is in progress, and no request of the disk is in use.
    ///
    /// # Safety
    ///
    /// `queue` is valid, and on the tag set that this belongs to.
    pub(super) unsafe fn with_stable_queues(
        &self,
        queue: NonNull<bindings::request_queue>,
        f: impl FnOnce(*mut bindings::request_queue),
    ) {
        let queue = queue.as_ptr();
        let _section = rcu::read_lock();
        if !self.in_progress.load(Acquire) {
            // By the type invariant, the queues stay until the section ends.
            f(queue);
        // SAFETY: By the safety requirement.
        } else if unsafe { bindings::blk_use_queue(queue) } {
            f(queue);
            // SAFETY: `blk_use_queue` succeeded.
            unsafe { bindings::blk_unuse_queue(queue) };
        }
    }
}

/// An update in progress. It ends when this is dropped. By then C replaces no queue any more.
#[must_use = "an update ends when this is dropped"]
pub(super) struct UpdateGuard<'a>(&'a QueueUpdate);

impl Drop for UpdateGuard<'_> {
    fn drop(&mut self) {
        // INVARIANT: They are not replaced any more. A CPU that sees this sees the new queues.
        self.0.in_progress.store(false, Release);
    }
}
