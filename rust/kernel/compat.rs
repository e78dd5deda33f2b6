// SPDX-License-Identifier: GPL-2.0

//! Whether the current task uses the ABI of another word size.
//!
//! C header: [`include/linux/compat.h`](srctree/include/linux/compat.h)

use crate::bindings;

/// Returns whether the current task is in a system call with an ABI of 32 bits on a kernel of 64.
///
/// Such a task may leave anything in the upper half of a `u64` that holds an address.
///
/// # Examples
///
/// ```
/// use kernel::{compat::in_compat_syscall, uaccess::UserPtr};
///
/// /// The memory that a task has given by an address in a structure.
/// fn memory(address: u64) -> UserPtr {
///     UserPtr::from_addr(if in_compat_syscall() {
///         address as u32 as usize
///     } else {
///         address as usize
///     })
/// }
/// ```
pub fn in_compat_syscall() -> bool {
    // SAFETY: The helper may be called by any task.
    unsafe { bindings::in_compat_syscall() }
}
