// SPDX-License-Identifier: GPL-2.0

//! Protection of the hardware queues of a disk while a CPU walks them.
//!
//! When the number of queues changes, C exits each hardware queue of each disk and initialises it
//! again. If it falls back to the old number, it reuses a queue that it has just exited. If that
//! fails because C is out of memory, C frees the queue immediately, although the disk still has a
//! pointer to it. Requests are not affected, because the disk is frozen. But a timer can stop or
//! start the queues at that time.
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

/// An update of the number of hardware queues in a tag set, and whether it is in progress.
///
/// # Invariants
///
/// The hardware queues of a disk that is not in use may be replaced only while `in_progress` is
/// set, and only after an RCU grace period since it was set. Those of a disk that is in use are not
/// replaced.
pub(super) struct QueueUpdate {
    in_progress: Atomic<bool>,
}

impl QueueUpdate {
    pub(super) fn new() -> Self {
        // INVARIANT: The queues are not being replaced.
        Self {
            in_progress: Atomic::new(false),
        }
    }

    /// Begins an update: waits until no CPU walks the queues of a disk that is not in use. C may
    /// replace these queues until the guard is dropped.
    ///
    /// May sleep. `_resize` is the lock that all callers hold, because updates must not overlap:
    /// the end of the first would also end the second.
    pub(super) fn begin<'a>(&'a self, _resize: &'a MutexGuard<'_, ()>) -> UpdateGuard<'a> {
        self.in_progress.store(true, Relaxed);
        rcu::synchronize_rcu();
        UpdateGuard(self)
    }

    /// Calls `f`, which walks the hardware queues of `queue`, unless C may be replacing them, that
    /// is, unless an update is in progress and the disk is not in use.
    ///
    /// # Safety
    ///
    /// `queue` is valid, and uses the tag set that this update belongs to.
    pub(super) unsafe fn with_stable_queues(
        &self,
        queue: NonNull<bindings::request_queue>,
        f: impl FnOnce(*mut bindings::request_queue),
    ) {
        let queue = queue.as_ptr();
        let _section = rcu::read_lock();
        if !self.in_progress.load(Acquire) {
            // By the type invariant, the queues are not replaced before the read-side critical
            // section ends.
            f(queue);
        // SAFETY: By the safety requirement.
        } else if unsafe { bindings::blk_use_queue(queue) } {
            f(queue);
            // SAFETY: `blk_use_queue` succeeded.
            unsafe { bindings::blk_unuse_queue(queue) };
        }
    }
}

/// A guard for an update in progress, which ends when the guard is dropped. C must have finished
/// replacing queues by then.
#[must_use = "an update ends when this is dropped"]
pub(super) struct UpdateGuard<'a>(&'a QueueUpdate);

impl Drop for UpdateGuard<'_> {
    fn drop(&mut self) {
        // INVARIANT: C has finished replacing queues. By the release ordering, a CPU that reads
        // this value also sees the new queues.
        self.0.in_progress.store(false, Release);
    }
}
