// SPDX-License-Identifier: GPL-2.0

//! What keeps a module in memory until nobody can call it any more.
//!
//! An object that makes C call into a driver is dropped by the driver's module, at the latest when
//! that goes. If the module forgets to, by [`core::mem::forget`] or because the object is in a
//! `static`, C would go on to call what is not there. A reference to the module is no remedy: it
//! could not be unloaded then, not even by those who do drop the object when it goes. So each such
//! object has a [`ModulePin`], which lets the module be unloaded, but not freed: whoever unloads it
//! waits for the pin to go, for ever if need be.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

// Some configurations have nobody to use it.
#![allow(dead_code)]

use crate::{
    bindings,
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Keeps a module in memory until dropped, even if it is unloaded.
///
/// For code that is built in, it does nothing.
///
/// # Invariants
///
/// It owns a reference to the directory of `owner` in sysfs, or `owner` is null.
pub(crate) struct ModulePin {
    owner: *mut bindings::module,
}

// SAFETY: References belong to no thread.
unsafe impl Send for ModulePin {}

// SAFETY: There is nothing to be done with a shared one.
unsafe impl Sync for ModulePin {}

impl ModulePin {
    /// Keeps `owner`.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while the parameters of the module are being parsed, `ENOTSUPP` for a module in a
    /// kernel without sysfs: nothing else keeps its memory.
    pub(crate) fn new(owner: &'static ThisModule) -> Result<Self> {
        // SAFETY: The pointer is that of a module whose code runs, or null.
        unsafe { Self::from_raw(owner.as_ptr()) }
    }

    /// Keeps the module that this code belongs to, if it is not built in.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub(crate) fn of_this_code() -> Result<Self> {
        // SAFETY: It is the module whose code runs, or null.
        unsafe { Self::from_raw(bindings::module_of_helpers()) }
    }

    /// Waits until nobody else uses a module that is being loaded: if that fails, the loader frees
    /// the module under those who have, for example, a disk or file of it open.
    ///
    /// Does nothing at any other time. May sleep.
    pub(crate) fn wait_for_early_users(&self) {
        // SAFETY: By the type invariant, the module is there.
        while unsafe { bindings::module_is_used_early(self.owner) } {
            fsleep(Delta::from_millis(1));
        }
    }

    /// # Safety
    ///
    /// `owner` is a module whose code runs, or null.
    unsafe fn from_raw(owner: *mut bindings::module) -> Result<Self> {
        // SAFETY: By the safety requirement.
        if unsafe { bindings::module_pin(owner) } {
            // INVARIANT: The helper took the reference.
            Ok(Self { owner })
        } else {
            Err(if cfg!(CONFIG_SYSFS) { EAGAIN } else { ENOTSUPP })
        }
    }
}

impl Drop for ModulePin {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the reference is ours, and gone after this.
        unsafe { bindings::module_unpin(self.owner) };
    }
}
