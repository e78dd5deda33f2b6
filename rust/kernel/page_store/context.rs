// SPDX-License-Identifier: GPL-2.0

//! Where a store may be used.

use crate::{
    alloc::{
        flags::GFP_NOWAIT,
        Flags, //
    },
    bindings,
    prelude::*, //
};

/// Makes sure that interrupts are enabled, for a caller in `queue_rq`: the block layer calls that
/// with interrupts enabled, and safe code disables them by what is counted, as a `SpinLockIrq`.
///
/// With interrupts disabled the caller may hold a lock that an interrupt handler takes. To wait for
/// a leaf under it is a deadlock, if that handler has interrupted the holder of the leaf.
///
/// # Errors
///
/// [`EBUSY`] if they are disabled.
#[inline(always)]
pub(super) fn interrupts_on() -> Result {
    // SAFETY: The helper may be called anywhere.
    if unsafe { bindings::page_store_irqs_off() } {
        Err(EBUSY)
    } else {
        Ok(())
    }
}

/// Makes sure that no task is interrupted, which may hold a leaf, and that interrupts are enabled,
/// for any caller.
///
/// # Errors
///
/// [`EBUSY`] in an interrupt, or where interrupts are disabled.
pub(super) fn in_task() -> Result {
    // SAFETY: The helper may be called anywhere.
    if !unsafe { bindings::page_store_in_task() } {
        return Err(EBUSY);
    }
    // SAFETY: The helper may be called anywhere.
    if unsafe { bindings::page_store_irqs_disabled() } {
        return Err(EBUSY);
    }
    Ok(())
}

/// How to allocate what a store has to have from the start: waiting where the caller may sleep.
pub(super) fn gfp() -> Flags {
    // SAFETY: The helper may be called anywhere.
    if unsafe { bindings::page_store_may_sleep() } {
        GFP_KERNEL
    } else {
        GFP_NOWAIT
    }
}
