// SPDX-License-Identifier: GPL-2.0

//! Access to the memory reserves, for hardware queues that C must be able to allocate.
//!
//! When the number of queues changes, C exits each hardware queue and initialises it again. If it
//! is out of memory in two attempts, it dereferences a NULL pointer. Therefore, the task may use
//! the kernel's memory reserves between the two steps (`PF_MEMALLOC`). It takes little of them, the
//! memory of one hardware queue at a time. Of the old queue only the flush request is freed soon. C
//! keeps the rest, which a later change can use again.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    task::Task, //
};

fn this_task() -> usize {
    Task::current_raw() as usize
}

/// Access to the memory reserves while C initialises the hardware queues of a tag set again.
///
/// # Invariants
///
/// `saved` is zero, or the return value of `memalloc_noreclaim_save()` in the task whose address is
/// `task`, until that task has restored it. Only that task writes it.
pub(super) struct Reserves {
    task: Atomic<usize>,
    saved: Atomic<u32>,
}

impl Reserves {
    pub(super) fn new() -> Self {
        // INVARIANT: No access is granted.
        Self {
            task: Atomic::new(0),
            saved: Atomic::new(0),
        }
    }

    /// Calls `f`, during which the task can be granted access to the reserves.
    ///
    /// Calls must not overlap.
    pub(super) fn with_access<R>(&self, f: impl FnOnce() -> R) -> R {
        self.task.store(this_task(), Relaxed);
        let result = f();
        self.revoke();
        self.task.store(0, Relaxed);
        result
    }

    /// Returns whether the current task runs [`Self::with_access`]. Other tasks never see their own
    /// address here, even without ordering.
    fn is_for_this_task(&self) -> bool {
        self.task.load(Relaxed) == this_task()
    }

    /// Grants the current task access to the reserves, if it runs [`Self::with_access`].
    pub(super) fn grant(&self) {
        if self.is_for_this_task() {
            // SAFETY: Any task may call the function.
            let saved = unsafe { bindings::blk_noreclaim_save() };
            // INVARIANT: If the task already has access, the new value is zero, so the stored value
            // stays, to be restored later.
            self.saved.store(self.saved.load(Relaxed) | saved, Relaxed);
        }
    }

    /// Revokes the access that [`Self::grant`] has granted to the current task, if any.
    pub(super) fn revoke(&self) {
        if self.is_for_this_task() {
            // SAFETY: By the type invariant, the value was saved by this task.
            unsafe { bindings::blk_noreclaim_restore(self.saved.load(Relaxed)) };
            // INVARIANT: The value was restored.
            self.saved.store(0, Relaxed);
        }
    }
}
