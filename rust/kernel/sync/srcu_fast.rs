// SPDX-License-Identifier: GPL-2.0

//! Sleepable RCU whose readers execute no barrier.
//!
//! A reader takes a few instructions, none of which is locked. In exchange,
//! [`SrcuFast::synchronize`] takes longer than that of [`Srcu`](super::Srcu).
//!
//! C header: [`include/linux/srcu.h`](srctree/include/linux/srcu.h)

// Not used in all configurations.
#![allow(dead_code)]

use crate::{
    bindings,
    error::to_result,
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

/// Sleepable RCU whose readers execute no barrier: C's SRCU-fast.
///
/// Dropping it sleeps.
///
/// # Invariants
///
/// `inner` was initialised by C, and is pinned.
#[pin_data(PinnedDrop)]
pub(crate) struct SrcuFast {
    #[pin]
    inner: Opaque<bindings::srcu_struct>,
}

// SAFETY: A `struct srcu_struct` belongs to no task.
unsafe impl Send for SrcuFast {}

// SAFETY: All of its functions may be called by several tasks at once.
unsafe impl Sync for SrcuFast {}

impl SrcuFast {
    /// Creates an SRCU structure. May sleep. Fails with `ENOMEM` if out of memory.
    pub(crate) fn new(
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // INVARIANT: C has initialised it on success, and it stays pinned.
            inner <- Opaque::try_ffi_init(|inner: *mut bindings::srcu_struct| {
                // SAFETY: `inner` is valid for writes, and pinned until it is dropped.
                to_result(unsafe {
                    bindings::srcu_fast_init(inner, name.as_char_ptr(), key.as_ptr())
                })
            }),
        })
    }

    /// Calls `f` in a read-side critical section, in which it may sleep.
    #[inline]
    pub(crate) fn read<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: By the type invariant. RCU is watching wherever code in Rust runs.
        let counter = unsafe { bindings::srcu_fast_read_lock(self.inner.get()) };
        let result = f();
        // SAFETY: The matching call has returned `counter` to this task.
        unsafe { bindings::srcu_fast_read_unlock(self.inner.get(), counter) };
        result
    }

    /// Waits for the read-side critical sections that have begun. Sleeps. In such a section, this
    /// never returns.
    pub(crate) fn synchronize(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::synchronize_srcu(self.inner.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for SrcuFast {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant. There are no readers, since each one borrows it for as
        // long as it reads, and no callbacks.
        unsafe { bindings::cleanup_srcu_struct(self.inner.get()) };
    }
}
