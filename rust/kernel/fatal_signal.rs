// SPDX-License-Identifier: GPL-2.0

//! Signals that end the current task.
//!
//! C header: [`include/linux/sched/signal.h`](srctree/include/linux/sched/signal.h)

use crate::bindings;

/// Returns whether a signal is pending that ends the current task.
///
/// A task that waits for a device for a long time should then give up. Unlike other signals, it is
/// no reason to begin the system call anew.
///
/// # Examples
///
/// ```
/// assert!(!kernel::fatal_signal::is_pending());
/// ```
pub fn is_pending() -> bool {
    // SAFETY: The helper may be called by any task.
    unsafe { bindings::fatal_signal_of_current() }
}
