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
/// `lent` is zero, or what `memalloc_noreclaim_save()` has returned in the task whose address is
/// `task`, as long as that has not restored it. Only that task writes it.
pub(super) struct Reserves {
    task: Atomic<usize>,
    lent: Atomic<u32>,
}

impl Reserves {
    pub(super) fn new() -> Self {
        // INVARIANT: Nothing is lent.
        Self {
            task: Atomic::new(0),
            lent: Atomic::new(0),
        }
    }

    /// Runs `change`, in which this task can have the reserves.
    ///
    /// Calls of this must not overlap.
    pub(super) fn during<R>(&self, change: impl FnOnce() -> R) -> R {
        self.task.store(this_task(), Relaxed);
        let result = change();
        self.take_back();
        self.task.store(0, Relaxed);
        result
    }

    /// Whether this task runs [`Self::during`]. Others see another task, whatever they see.
    fn is_for_this_task(&self) -> bool {
        self.task.load(Relaxed) == this_task()
    }

    /// Lets this task have the reserves, if it runs [`Self::during`].
    pub(super) fn lend(&self) {
        if self.is_for_this_task() {
            // SAFETY: Any task may call it.
            let saved = unsafe { bindings::blk_noreclaim_save() };
            // INVARIANT: A task that had access already saves zero, and this restores it later.
            self.lent.store(self.lent.load(Relaxed) | saved, Relaxed);
        }
    }

    /// Ends what [`Self::lend`] has begun, if this task did.
    pub(super) fn take_back(&self) {
        if self.is_for_this_task() {
            // SAFETY: By the type invariant, this task has saved it.
            unsafe { bindings::blk_noreclaim_restore(self.lent.load(Relaxed)) };
            // INVARIANT: It is restored.
            self.lent.store(0, Relaxed);
        }
    }
}
