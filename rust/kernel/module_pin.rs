// SPDX-License-Identifier: GPL-2.0

//! Pins, which keep a module in memory until its code can no longer be called.
//!
//! An object that makes C call into a driver is dropped by the driver's module, at the latest when
//! the module is unloaded. If the module leaks it, by [`core::mem::forget`] or in a `static`, C
//! would continue to call code that is not in memory any more. A reference to the module does not
//! help: the module could not be unloaded then, even if its exit drops the object. Each such object
//! therefore has a [`ModulePin`], with which the module can be unloaded, but is not freed: the task
//! that unloads it waits until the pin is dropped, if need be forever.
//!
//! Most pins are dropped by the module's own code, to which the task returns. The reference that
//! the pin holds is therefore put later, by code that is built in; see [`late`]. Where this code is
//! part of the module that it pins, no other code could do that.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

// Not used in all configurations.
#![allow(dead_code)]

#[cfg(not(MODULE))]
mod late;

mod reference;

use self::reference::Reference;
use crate::{
    bindings,
    prelude::*, //
};
use core::ptr::NonNull;

/// Keeps a module in memory until dropped, even if the module is unloaded.
///
/// For built-in code, it does nothing.
pub(crate) struct ModulePin {
    reference: Option<Reference>,
}

impl ModulePin {
    /// Pins `owner`. May sleep.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while the parameters of the module are being parsed; `ENOMEM` if out of memory;
    /// `ENOTSUPP` for a module in a kernel without sysfs, where nothing else keeps it in memory, or
    /// if the driver's Kconfig entry does not select `NEED_TASKS_RCU`.
    pub(crate) fn new(owner: &'static ThisModule) -> Result<Self> {
        // SAFETY: The pointer is that of a module whose code runs, or null.
        unsafe { Self::from_raw(owner.as_ptr()) }
    }

    /// Pins the module that contains this code, if it is not built in.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub(crate) fn of_this_code() -> Result<Self> {
        #[cfg(MODULE)]
        {
            extern "C" {
                static __this_module: crate::types::Opaque<bindings::module>;
            }
            let owner = crate::types::Opaque::cast_into(&raw const __this_module);
            // SAFETY: It is the module whose code runs.
            unsafe { Self::from_raw(owner) }
        }
        #[cfg(not(MODULE))]
        Ok(Self { reference: None })
    }

    /// Returns whether the module is being loaded or unloaded.
    ///
    /// If loading fails, the loader frees the module even if it is used, for example by a task that
    /// has one of its disks open. Loading may have failed already, since a work item may drop what
    /// the module has dropped.
    pub(crate) fn is_not_live(&self) -> bool {
        self.reference.as_ref().is_some_and(Reference::is_not_live)
    }

    /// # Safety
    ///
    /// `owner` is a module whose code runs, or null.
    unsafe fn from_raw(owner: *mut bindings::module) -> Result<Self> {
        let Some(owner) = NonNull::new(owner) else {
            return Ok(Self { reference: None });
        };
        #[cfg(not(MODULE))]
        late::reserve()?;
        // SAFETY: By the safety requirement.
        let reference = unsafe { Reference::new(owner) };
        #[cfg(not(MODULE))]
        if reference.is_err() {
            late::unreserve();
        }
        Ok(Self {
            reference: Some(reference?),
        })
    }

    /// Waits until a module that is being loaded is used by nothing but the loader. May sleep.
    ///
    /// This polls, as C does not notify when a reference to a module is put. Code that is built in
    /// does without: see `DiskOperations`.
    #[cfg(MODULE)]
    pub(crate) fn wait_for_early_users(&self) {
        use crate::time::{
            delay::fsleep,
            Delta, //
        };

        let Some(reference) = &self.reference else {
            return;
        };
        while reference.is_used_early() {
            fsleep(Delta::from_millis(1));
        }
    }
}

impl Drop for ModulePin {
    // Not inlined, so that it is not part of the module that drops the pin.
    #[inline(never)]
    fn drop(&mut self) {
        #[cfg(not(MODULE))]
        if let Some(reference) = self.reference.take() {
            late::put_later(reference);
        }
    }
}
