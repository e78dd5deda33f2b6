// SPDX-License-Identifier: GPL-2.0

//! What has to wait when it is dropped, wherever that happens.
//!
//! Some drops wait: for I/O to end, for a grace period, for a callback to return. But safe code can
//! drop a handle anywhere: in an interrupt, under a spinlock, or in the very callback that its drop
//! waits for. So what waits is in a [`LateDrop`], which is dropped at once where that is possible,
//! and by a work item elsewhere.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

// Not used in all configurations.
#![allow(dead_code)]

use crate::{
    alloc::Flags,
    bindings,
    module_pin::ModulePin,
    prelude::*,
    static_lock_class,
    workqueue::{
        self,
        impl_has_work,
        Work,
        WorkItem, //
    },
};
use core::{
    mem::ManuallyDrop,
    ops::Deref, //
};

/// Whether the caller can wait for I/O, as far as the kernel knows.
///
/// It cannot in an interrupt, under a spinlock, with preemption off, or in a read section of RCU;
/// nor in a NOIO scope, where I/O may be waiting for the caller.
///
/// A kernel without `CONFIG_PREEMPT_COUNT` does not know of spinlocks and read sections, and then
/// the answer is never yes.
pub(crate) fn may_wait() -> bool {
    // SAFETY: The helper may be called anywhere.
    unsafe { bindings::late_drop_may_wait() }
}

/// Fails with `EDEADLK` if the caller surely cannot wait for I/O, as I/O may be waiting for it.
///
/// With `CONFIG_PREEMPT_COUNT` this is so wherever [`may_wait`] says no; without, where the kernel
/// knows better.
pub(crate) fn can_wait() -> Result {
    // SAFETY: The helper may be called anywhere.
    if unsafe { bindings::late_drop_must_not_wait() } {
        Err(EDEADLK)
    } else {
        Ok(())
    }
}

/// The size in bytes of the largest allocation that holds data of a type which the driver chooses.
///
/// `kmalloc` warns of a size that it never has. On no machine is that less than this.
pub(crate) const MAX_SIZE: usize = 1 << 20;

/// A value whose drop waits, which may be dropped anywhere.
///
/// Dropping this drops the value before it returns if the caller [may wait](may_wait), else a
/// worker does so a little later. The module whose code that is stays until then. Dropping never
/// allocates.
///
/// # Invariants
///
/// The shell is there until this is dropped.
pub(crate) struct LateDrop<T: Send + 'static> {
    shell: ManuallyDrop<Pin<KBox<Shell<T>>>>,
}

/// The allocation with the value.
#[pin_data]
struct Shell<T: Send + 'static> {
    #[pin]
    work: Work<Self>,
    #[pin]
    value: T,
    /// What keeps the module whose code drops the value. It is there until that has happened.
    pin: Option<ModulePin>,
}

/// The name of a lock class. It has one address, as lockdep asks: generic code is a part of each
/// module that uses it, and so are the names in it.
static WORK_NAME: &CStr = c"late_drop";

impl_has_work! {
    impl{T: Send + 'static} HasWork<Self> for Shell<T> { self.work }
}

impl<T: Send + 'static> LateDrop<T> {
    /// Makes a value by `init`, in memory of its own.
    ///
    /// `pin` keeps the module that the code of `T` is in.
    pub(crate) fn new(pin: ModulePin, init: impl PinInit<T, Error>, flags: Flags) -> Result<Self> {
        const_assert!(size_of::<Shell<T>>() <= MAX_SIZE);
        let shell = KBox::try_pin_init(
            try_pin_init!(Shell {
                work <- Work::new(WORK_NAME, static_lock_class!()),
                value <- init,
                pin: Some(pin),
            }? Error),
            flags,
        )?;
        // INVARIANT: Just made.
        Ok(Self {
            shell: ManuallyDrop::new(shell),
        })
    }

    /// The value, for change.
    pub(crate) fn as_mut(&mut self) -> Pin<&mut T> {
        self.shell.as_mut().project().value
    }
}

impl<T: Send + 'static> Deref for LateDrop<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.shell.value
    }
}

impl<T: Send + 'static> Shell<T> {
    /// Drops the value, then what keeps its module.
    fn finish(mut self: Pin<KBox<Self>>) {
        let pin = self.as_mut().project().pin.take();
        drop(self);
        drop(pin);
    }
}

impl<T: Send + 'static> WorkItem for Shell<T> {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Self::Pointer) {
        this.finish();
    }
}

impl<T: Send + 'static> Drop for LateDrop<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, it is there. It is not used again.
        let shell = unsafe { ManuallyDrop::take(&mut self.shell) };
        if may_wait() {
            shell.finish();
            return;
        }
        // SAFETY: C sets the pointer when the system starts, and never again.
        let queue = unsafe { bindings::system_dfl_wq };
        // SAFETY: The queue is never destroyed.
        let queue = unsafe { workqueue::Queue::from_raw(queue) };
        queue.enqueue(shell);
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
