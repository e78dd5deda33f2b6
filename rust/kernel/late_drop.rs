// SPDX-License-Identifier: GPL-2.0

//! Values whose drop waits, to be dropped in any context.
//!
//! Some drops wait: for I/O to end, for a grace period, for a callback to return. But safe code can
//! drop a value in any context: in an interrupt, under a spinlock, or in the very callback that the
//! drop waits for. Such a value is therefore in a [`LateDrop`], which drops it at once if the
//! caller can wait, and in a work item otherwise.
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

/// Returns whether the caller can wait for I/O, as far as the kernel knows.
///
/// The caller cannot wait in an interrupt, under a spinlock, with preemption disabled, in an RCU
/// read-side critical section, or in a NOIO scope, where I/O may be waiting for the caller.
///
/// A kernel without `CONFIG_PREEMPT_COUNT` does not track spinlocks and read-side critical
/// sections. This always returns false there.
pub(crate) fn may_wait() -> bool {
    // SAFETY: The helper may be called anywhere.
    unsafe { bindings::late_drop_may_wait() }
}

/// Fails with `EDEADLK` if the caller certainly cannot wait for I/O, as I/O may be waiting for it.
///
/// With `CONFIG_PREEMPT_COUNT`, this fails wherever [`may_wait`] returns false; without, only in
/// those contexts that the kernel tracks nevertheless.
pub(crate) fn check_may_wait() -> Result {
    // SAFETY: The helper may be called anywhere.
    if unsafe { bindings::late_drop_must_not_wait() } {
        Err(EDEADLK)
    } else {
        Ok(())
    }
}

/// Fails with `EDEADLK` if the caller certainly cannot sleep. As [`check_may_wait`], but succeeds
/// in a NOIO scope, where the caller must not wait for I/O.
pub(crate) fn check_may_sleep() -> Result {
    // SAFETY: The helper may be called anywhere.
    if unsafe { bindings::late_drop_must_not_sleep() } {
        Err(EDEADLK)
    } else {
        Ok(())
    }
}

/// The size in bytes of the largest allocation for data of a type that the driver chooses.
///
/// `kmalloc` warns about a size that it does not support. It supports this size on all machines.
pub(crate) const MAX_SIZE: usize = 1 << 20;

/// A value whose drop waits, which may be dropped in any context.
///
/// If the caller [may wait](may_wait), the value is dropped before dropping this returns.
/// Otherwise, a work item drops the value a little later. The module that contains the value's code
/// stays in memory until then. Dropping never allocates.
///
/// # Invariants
///
/// `inner` is valid until this is dropped.
pub(crate) struct LateDrop<T: Send + 'static> {
    inner: ManuallyDrop<Pin<KBox<Inner<T>>>>,
}

/// The allocation with the value.
#[pin_data]
struct Inner<T: Send + 'static> {
    #[pin]
    work: Work<Self>,
    #[pin]
    value: T,
    /// Keeps the module whose code drops the value in memory until that has happened.
    pin: Option<ModulePin>,
}

/// The name of a lock class. lockdep requires a single address for it, but generic code, with the
/// names in it, is part of each module that uses it.
static WORK_NAME: &CStr = c"late_drop";

impl_has_work! {
    impl{T: Send + 'static} HasWork<Self> for Inner<T> { self.work }
}

impl<T: Send + 'static> LateDrop<T> {
    /// Creates a value by `init` in an allocation of its own.
    ///
    /// `pin` keeps the module that contains the code of `T`.
    pub(crate) fn new(pin: ModulePin, init: impl PinInit<T, Error>, flags: Flags) -> Result<Self> {
        const_assert!(size_of::<Inner<T>>() <= MAX_SIZE);
        let inner = KBox::try_pin_init(
            try_pin_init!(Inner {
                work <- Work::new(WORK_NAME, static_lock_class!()),
                value <- init,
                pin: Some(pin),
            }? Error),
            flags,
        )?;
        // INVARIANT: `inner` was just allocated.
        Ok(Self {
            inner: ManuallyDrop::new(inner),
        })
    }

    /// Returns a mutable reference to the value.
    pub(crate) fn as_mut(&mut self) -> Pin<&mut T> {
        self.inner.as_mut().project().value
    }

    /// Drops the value here, and in a work item only if the caller certainly cannot sleep.
    ///
    /// The drop waits for no I/O.
    pub(crate) fn drop_here(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: By the type invariant, `inner` is valid. It is not used again.
        let inner = unsafe { ManuallyDrop::take(&mut this.inner) };
        match check_may_sleep() {
            Ok(()) => inner.finish(),
            Err(_) => inner.finish_in_worker(),
        }
    }

    /// Drops the value in a work item, also where the caller could wait: the drop may wait for the
    /// caller.
    pub(crate) fn drop_in_worker(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: By the type invariant, `inner` is valid. It is not used again.
        unsafe { ManuallyDrop::take(&mut this.inner) }.finish_in_worker();
    }
}

impl<T: Send + 'static> Deref for LateDrop<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner.value
    }
}

impl<T: Send + 'static> Inner<T> {
    /// Drops the value, then the pin of its module.
    fn finish(mut self: Pin<KBox<Self>>) {
        let pin = self.as_mut().project().pin.take();
        drop(self);
        drop(pin);
    }

    /// Has a worker do that.
    fn finish_in_worker(self: Pin<KBox<Self>>) {
        // SAFETY: C sets the pointer at boot, and never changes it afterwards.
        let queue = unsafe { bindings::system_dfl_wq };
        // SAFETY: The queue is never destroyed.
        let queue = unsafe { workqueue::Queue::from_raw(queue) };
        queue.enqueue(self);
    }
}

impl<T: Send + 'static> WorkItem for Inner<T> {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Self::Pointer) {
        this.finish();
    }
}

impl<T: Send + 'static> Drop for LateDrop<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, `inner` is valid. It is not used again.
        let inner = unsafe { ManuallyDrop::take(&mut self.inner) };
        if may_wait() {
            inner.finish();
        } else {
            inner.finish_in_worker();
        }
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
