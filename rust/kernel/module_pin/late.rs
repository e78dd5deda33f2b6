// SPDX-License-Identifier: GPL-2.0

//! Gives up modules when no task can be in the code that dropped the pin any more.
//!
//! A task that drops a pin returns into the module's code, where it may be preempted. So the
//! reference is given up by a work item, after a grace period of RCU tasks: by then each task was
//! in user space, has slept of its own accord, or has ended. Drivers select
//! `CONFIG_NEED_TASKS_RCU`; without preemption, a grace period of RCU does.
//!
//! To unload a module must not take that long. What the unloading task itself has dropped, in the
//! module's exit, is given up as soon as that has returned. Likewise if the initialisation fails.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::reference::Reference;
use crate::{
    bindings,
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SetOnce, //
    },
    task::Task,
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque,
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    }, //
};

/// What was dropped, and is not given up yet.
static LATE: SetOnce<Arc<Late>> = SetOnce::new();

/// Registered with C once there is a [`Late`].
static NOTIFIER: Notifier = Notifier(Opaque::new(bindings::notifier_block {
    notifier_call: Some(module_changes),
    next: core::ptr::null_mut(),
    priority: 0,
}));

/// The references to give up.
#[pin_data]
struct Late {
    #[pin]
    references: Mutex<References>,
    #[pin]
    work: Work<Late>,
}

/// # Invariants
///
/// `dropped` has room for `held` more.
struct References {
    /// How many are still held by a pin.
    held: usize,
    /// In the order in which they were dropped.
    dropped: KVec<Dropped>,
    /// The number of the next to be dropped.
    next: u64,
}

impl References {
    /// Moves what was dropped into another list, which has no less room.
    fn move_into(&mut self, list: KVec<Dropped>) {
        for dropped in core::mem::replace(&mut self.dropped, list) {
            // It fits, so nothing is dropped here.
            let _ = self.dropped.push_within_capacity(dropped);
        }
    }
}

/// A reference whose pin was dropped.
struct Dropped {
    reference: Reference,
    number: u64,
    /// Only compared, since the task may be gone.
    task: usize,
}

impl_has_work! {
    impl HasWork<Self> for Late { self.work }
}

impl Late {
    /// Gives up those that fit, one after another without the lock.
    fn give_up(&self, fits: impl Fn(&Dropped) -> bool) {
        loop {
            let mut references = self.references.lock();
            let Some(index) = references.dropped.iter().position(&fits) else {
                break;
            };
            let dropped = references.dropped.remove(index);
            drop(references);
            drop(dropped);
        }
    }
}

impl WorkItem for Late {
    type Pointer = Arc<Late>;

    fn run(this: Arc<Late>) {
        let next = this.references.lock().next;
        // SAFETY: Work items may sleep.
        unsafe { bindings::rcu_tasks_synchronize() };
        // What was dropped meanwhile has queued the work item again.
        this.give_up(|dropped| dropped.number < next);
    }
}

/// Makes room for a reference that will have to be [given up](give_up) or [not](unreserve).
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn reserve() -> Result {
    if LATE.as_ref().is_none() {
        let late = Arc::pin_init(
            try_pin_init!(Late {
                references <- new_mutex!(References {
                    held: 0,
                    dropped: KVec::new(),
                    next: 0,
                }),
                work <- new_work!("Late::work"),
            }),
            GFP_KERNEL,
        )?;
        if LATE.populate(late) {
            NOTIFIER.register();
        }
    }
    let late = loop {
        if let Some(late) = LATE.as_ref() {
            break late;
        }
        // Another task is just about to put one there, but does not run at the moment.
        fsleep(Delta::from_millis(1));
    };
    let mut larger = KVec::new();
    loop {
        let mut references = late.references.lock();
        let needed = references.held + 1 + references.dropped.len();
        if needed <= references.dropped.capacity() {
            // INVARIANT: There is room for as many.
            references.held += 1;
            return Ok(());
        }
        if needed <= larger.capacity() {
            references.move_into(core::mem::take(&mut larger));
            continue;
        }
        // Pins may be dropped where the allocation would wait for it.
        drop(references);
        larger = KVec::with_capacity(2 * needed, GFP_KERNEL)?;
    }
}

/// Gives back the room for a reference that was not taken.
pub(super) fn unreserve() {
    if let Some(late) = LATE.as_ref() {
        late.references.lock().held -= 1;
    }
}

/// Gives up a reference when the calling task cannot be in the module's code any more.
pub(super) fn give_up(reference: Reference) {
    // There is room for a reference, so there is a list.
    let Some(late) = LATE.as_ref() else {
        return;
    };
    let mut references = late.references.lock();
    let number = references.next;
    references.next += 1;
    references.held -= 1;
    // By the type invariant there is room.
    let _ = references.dropped.push_within_capacity(Dropped {
        reference,
        number,
        task: Task::current_raw().addr(),
    });
    drop(references);
    // If it is queued already, it has not begun.
    let _ = queue().enqueue(late.clone());
}

/// Where the work item runs: on any CPU, so that it need not wait for a task that is busy on one.
fn queue() -> &'static Queue {
    // SAFETY: C sets the pointer when the system starts, and never again.
    let queue = unsafe { bindings::system_dfl_wq };
    // SAFETY: The queue is never destroyed.
    unsafe { Queue::from_raw(queue) }
}

/// Has C say which modules come and go.
struct Notifier(Opaque<bindings::notifier_block>);

// SAFETY: C has a lock for what it changes in there.
unsafe impl Sync for Notifier {}

impl Notifier {
    /// To be called once.
    fn register(&'static self) {
        #[cfg(CONFIG_MODULES)]
        // SAFETY: It is static, and registered once. It never fails.
        unsafe {
            bindings::register_module_notifier(self.0.get())
        };
    }
}

/// Called by C when a module has changed its state; for one that goes, after its exit or its failed
/// initialisation has returned, by the task that has run that and will free the module.
///
/// # Safety
///
/// None.
unsafe extern "C" fn module_changes(
    _notifier: *mut bindings::notifier_block,
    state: c_ulong,
    module: *mut c_void,
) -> c_int {
    const GOING: c_ulong = bindings::module_state_MODULE_STATE_GOING as c_ulong;

    if state == GOING {
        if let Some(late) = LATE.as_ref() {
            // This task is here, and not in the module's code. If it is not the one that dropped
            // the pin, but has got the place of that in memory, that one has ended.
            let task = Task::current_raw().addr();
            late.give_up(|dropped| dropped.task == task && dropped.reference.is_of(module.cast()));
        }
    }
    bindings::NOTIFY_DONE as c_int
}
