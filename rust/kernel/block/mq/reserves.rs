// SPDX-License-Identifier: GPL-2.0

//! The last memory there is, for hardware queues that C cannot do without.
//!
//! When the number of queues changes, C takes each queue down and makes it again. If it finds no
//! memory for that, at two tries, it goes on with a null pointer. So between taking down and
//! making, the task may have the reserves of the kernel, as if it was about to free memory: what
//! was taken down is freed soon, and is as much as what is made.
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

/// Access to the reserves of memory while the queues of a tag set are made anew.
///
/// # Invariants
///
/// `saved` is zero, or what `memalloc_noreclaim_save()` has returned in the task whose address is
/// `task`, as long as that has not restored it. Only that task writes it.
pub(super) struct Reserves {
    task: Atomic<usize>,
    saved: Atomic<u32>,
}

impl Reserves {
    pub(super) fn new() -> Self {
        // INVARIANT: Nothing is lent.
        Self {
            task: Atomic::new(0),
            saved: Atomic::new(0),
        }
    }

    /// Runs `f`, in which this task can have the reserves.
    ///
    /// Calls of this must not overlap.
    pub(super) fn with_access<R>(&self, f: impl FnOnce() -> R) -> R {
        self.task.store(this_task(), Relaxed);
        let result = f();
        self.revoke();
        self.task.store(0, Relaxed);
        result
    }

    /// Whether this task runs [`Self::with_access`]. Others see another task, whatever they see.
    fn is_for_this_task(&self) -> bool {
        self.task.load(Relaxed) == this_task()
    }

    /// Lets this task have the reserves, if it runs [`Self::with_access`].
    pub(super) fn grant(&self) {
        if self.is_for_this_task() {
            // SAFETY: Any task may call it.
            let saved = unsafe { bindings::blk_noreclaim_save() };
            // INVARIANT: A task that had access already saves zero, and this restores it later.
            self.saved.store(self.saved.load(Relaxed) | saved, Relaxed);
        }
    }

    /// Ends what [`Self::grant`] has begun, if this task did.
    pub(super) fn revoke(&self) {
        if self.is_for_this_task() {
            // SAFETY: By the type invariant, this task has saved it.
            unsafe { bindings::blk_noreclaim_restore(self.saved.load(Relaxed)) };
            // INVARIANT: It is restored.
            self.saved.store(0, Relaxed);
        }
    }
}
