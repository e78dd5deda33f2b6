// SPDX-License-Identifier: GPL-2.0

//! What the current task may do beyond the rights of its user.
//!
//! C header: [`include/linux/capability.h`](srctree/include/linux/capability.h)

use crate::bindings;

/// Returns whether the current task may administer the system: `CAP_SYS_ADMIN` in the initial user
/// namespace.
///
/// If so, the task is marked as one that has used the rights of an administrator.
///
/// # Examples
///
/// ```
/// use kernel::{capability, prelude::*};
///
/// fn reset() -> Result {
///     if !capability::is_admin() {
///         return Err(EACCES);
///     }
///     // ...
///     Ok(())
/// }
/// ```
pub fn is_admin() -> bool {
    // SAFETY: The helper may be called by any task.
    unsafe { bindings::capability_is_admin() }
}
