// SPDX-License-Identifier: GPL-2.0

//! A workqueue of one's own, which makes progress when there is no memory.
//!
//! A worker for a system workqueue may have to be created first, for which memory has to be
//! reclaimed. Work that is needed to reclaim memory, such as the reset of a storage device, would
//! wait for itself.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

// Not used in all configurations.
#![allow(dead_code)]

use crate::{
    bindings,
    late_drop::LateDrop,
    module_pin::ModulePin,
    prelude::*,
    workqueue::Queue, //
};
use core::{
    ops::Deref,
    ptr::NonNull, //
};

/// A workqueue that has a worker in reserve, so that some work item of it is always executed.
///
/// A work item may be executed on any CPU. Work items may be executed at the same time, but in the
/// order in which they were queued if there is no memory for more workers. So none may wait for a
/// later one.
///
/// This may be dropped anywhere, also by a work item of the workqueue: another worker waits for the
/// work items that are left, and then frees it.
///
/// # Invariants
///
/// It is there until this is dropped.
pub(crate) struct OwnedQueue {
    queue: Option<LateDrop<Raw>>,
}

/// A workqueue of C.
///
/// # Invariants
///
/// It is valid, and belongs to this.
struct Raw(NonNull<bindings::workqueue_struct>);

// SAFETY: Any task may use or destroy a workqueue.
unsafe impl Send for Raw {}

// SAFETY: As above.
unsafe impl Sync for Raw {}

impl OwnedQueue {
    /// Makes a workqueue. May sleep.
    ///
    /// `pin` keeps the module that contains the code of the work items. It is dropped after the
    /// last one was executed.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if out of memory.
    pub(crate) fn new(name: &CStr, pin: ModulePin) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM;
        // SAFETY: The format has one argument, a string.
        let raw = unsafe {
            bindings::alloc_workqueue_noprof(c"%s".as_char_ptr(), flags, 0, name.as_char_ptr())
        };
        // INVARIANT: It was just made.
        let raw = Raw(NonNull::new(raw).ok_or(ENOMEM)?);
        Ok(Self {
            queue: Some(LateDrop::new(pin, Ok(raw), GFP_KERNEL)?),
        })
    }
}

impl Deref for OwnedQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        // By the type invariant, it is there.
        let raw = self
            .queue
            .as_ref()
            .map_or(core::ptr::null_mut(), |raw| raw.0.as_ptr());
        // SAFETY: By the type invariant of `Raw`, it is valid until it is dropped with this.
        unsafe { Queue::from_raw(raw) }
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.drop_in_worker();
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Waits until no work item is left.
        //
        // SAFETY: By the type invariant. No work item of the workqueue executes this, as it is
        // dropped by a worker of another one.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
