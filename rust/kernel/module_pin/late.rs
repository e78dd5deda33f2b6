// SPDX-License-Identifier: GPL-2.0

//! Puts the references of pins when no task can be in the code that dropped the pin any more.
//!
//! A task that drops a pin returns to the module's code, where it may be preempted. The reference
//! is therefore put by a work item, after an RCU tasks grace period: by then each task was in user
//! space, has slept voluntarily, or has exited. Drivers select `CONFIG_NEED_TASKS_RCU`; without
//! preemption, an RCU grace period is sufficient.
//!
//! A task that sleeps in the module's code after it has dropped the pin is not waited for. This is
//! up to what has called that code, as for all code of a module: an open file has a reference of
//! its own, an exit waits for its work items.
//!
//! Unloading a module must not take that long. If the task that unloads the module dropped the pin,
//! in the module's exit, the reference is put as soon as the exit has returned. The same applies to
//! an initialisation that fails.
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

/// The references that are still to be put.
static DEFERRED_PUTS: SetOnce<Arc<DeferredPuts>> = SetOnce::new();

/// Registered with C when [`DEFERRED_PUTS`] is set.
static NOTIFIER: Notifier = Notifier(Opaque::new(bindings::notifier_block {
    notifier_call: Some(module_changes),
    next: core::ptr::null_mut(),
    priority: 0,
}));

/// The references to put.
#[pin_data]
struct DeferredPuts {
    #[pin]
    references: Mutex<References>,
    #[pin]
    work: Work<DeferredPuts>,
}

/// # Invariants
///
/// `dropped` has room for `held` more elements.
struct References {
    /// The number of references whose pins are not dropped yet.
    held: usize,
    /// In the order in which the pins were dropped.
    dropped: KVec<DroppedPin>,
    /// The number of the next pin to be dropped.
    next: u64,
}

impl References {
    /// Replaces the vector by `list`, which has at least its capacity, and moves the elements.
    fn move_into(&mut self, list: KVec<DroppedPin>) {
        for dropped in core::mem::replace(&mut self.dropped, list) {
            // The elements fit, so nothing is dropped here.
            let _ = self.dropped.push_within_capacity(dropped);
        }
    }
}

/// A reference whose pin was dropped.
struct DroppedPin {
    reference: Reference,
    number: u64,
    /// Compared only, since the task may have exited.
    task: usize,
}

impl_has_work! {
    impl HasWork<Self> for DeferredPuts { self.work }
}

impl DeferredPuts {
    /// Puts those references that match, one after another without the lock.
    fn put_if(&self, matches: impl Fn(&DroppedPin) -> bool) {
        loop {
            let mut references = self.references.lock();
            let Some(index) = references.dropped.iter().position(&matches) else {
                break;
            };
            let dropped = references.dropped.remove(index);
            drop(references);
            drop(dropped);
        }
    }
}

impl WorkItem for DeferredPuts {
    type Pointer = Arc<DeferredPuts>;

    fn run(this: Arc<DeferredPuts>) {
        let next = this.references.lock().next;
        // SAFETY: Work items may sleep.
        unsafe { bindings::rcu_tasks_synchronize() };
        // A pin that was dropped meanwhile has queued the work item again.
        this.put_if(|dropped| dropped.number < next);
    }
}

/// Reserves room for a reference, to be [put](put_later) or [cancelled](unreserve) later.
///
/// # Errors
///
/// `ENOMEM` if out of memory; `ENOTSUPP` if a preempted task would not be waited for.
pub(super) fn reserve() -> Result {
    if cfg!(all(CONFIG_PREEMPTION, not(CONFIG_TASKS_RCU))) {
        pr_err!("A module needs CONFIG_NEED_TASKS_RCU, which its Kconfig entry has to select\n");
        return Err(ENOTSUPP);
    }
    if DEFERRED_PUTS.as_ref().is_none() {
        let puts = Arc::pin_init(
            try_pin_init!(DeferredPuts {
                references <- new_mutex!(References {
                    held: 0,
                    dropped: KVec::new(),
                    next: 0,
                }),
                work <- new_work!("DeferredPuts::work"),
            }),
            GFP_KERNEL,
        )?;
        if DEFERRED_PUTS.populate(puts) {
            NOTIFIER.register();
        }
    }
    let puts = loop {
        if let Some(puts) = DEFERRED_PUTS.as_ref() {
            break puts;
        }
        // Another task is about to set it, but is not running at the moment.
        fsleep(Delta::from_millis(1));
    };
    let mut larger = KVec::new();
    loop {
        let mut references = puts.references.lock();
        let needed = references.held + 1 + references.dropped.len();
        if needed <= references.dropped.capacity() {
            // INVARIANT: There is room for that many, by the check above.
            references.held += 1;
            return Ok(());
        }
        if needed <= larger.capacity() {
            references.move_into(core::mem::take(&mut larger));
            continue;
        }
        // To allocate may mean to wait for a task that drops a pin, for which it needs the lock.
        drop(references);
        larger = KVec::with_capacity(2 * needed, GFP_KERNEL)?;
    }
}

/// Releases the room for a reference that was not taken.
pub(super) fn unreserve() {
    if let Some(puts) = DEFERRED_PUTS.as_ref() {
        puts.references.lock().held -= 1;
    }
}

/// Puts a reference once the calling task cannot be in the module's code any more.
pub(super) fn put_later(reference: Reference) {
    // There is room for a reference, so `DEFERRED_PUTS` is set.
    let Some(puts) = DEFERRED_PUTS.as_ref() else {
        return;
    };
    let mut references = puts.references.lock();
    let number = references.next;
    references.next += 1;
    references.held -= 1;
    // By the type invariant, there is room.
    let _ = references.dropped.push_within_capacity(DroppedPin {
        reference,
        number,
        task: Task::current_raw().addr(),
    });
    drop(references);
    // If the work item is queued already, it has not started.
    let _ = queue().enqueue(puts.clone());
}

/// Returns the workqueue, which is unbound: the work item does not wait for a task that is busy on
/// a CPU.
fn queue() -> &'static Queue {
    // SAFETY: C sets the pointer at boot, and never changes it afterwards.
    let queue = unsafe { bindings::system_dfl_wq };
    // SAFETY: The queue is never destroyed.
    unsafe { Queue::from_raw(queue) }
}

/// The notifier for changes of the state of modules.
struct Notifier(Opaque<bindings::notifier_block>);

// SAFETY: C takes a lock to change it.
unsafe impl Sync for Notifier {}

impl Notifier {
    /// Registers the notifier. Called once.
    fn register(&'static self) {
        #[cfg(CONFIG_MODULES)]
        // SAFETY: It is static, and registered once. Registering never fails.
        unsafe {
            bindings::register_module_notifier(self.0.get())
        };
    }
}

/// Called by C when a module has changed its state. In `MODULE_STATE_GOING`, the exit or the failed
/// initialisation of the module has returned, and the calling task has run it and will free the
/// module.
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
        if let Some(puts) = DEFERRED_PUTS.as_ref() {
            // The calling task is not in the module's code. If a different task, with a
            // `task_struct` at the same address, has dropped the pin, that task has exited.
            let task = Task::current_raw().addr();
            puts.put_if(|dropped| dropped.task == task && dropped.reference.is_of(module.cast()));
        }
    }
    bindings::NOTIFY_DONE as c_int
}
