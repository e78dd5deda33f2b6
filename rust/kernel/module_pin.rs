// SPDX-License-Identifier: GPL-2.0

//! What keeps a module in memory until its code can no longer be called.
//!
//! An object that makes C call into a driver is dropped by the driver's module, at the latest when
//! that goes. If the module forgets to, by [`core::mem::forget`] or because the object is in a
//! `static`, C would go on to call what is not there. A reference to the module is no remedy: it
//! could not be unloaded then, not even if the object is dropped when it goes. So each such object
//! has a [`ModulePin`], which lets the module be unloaded, but not freed: the task that unloads it
//! waits for the pin to go, for ever if need be.
//!
//! Most pins are dropped by the module's own code, to which the task returns. What the pin holds is
//! therefore given up later, by code that is built in; see [`late`]. Where this code is a part of
//! the module that it pins, no other code is there to do it.
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

/// Keeps a module in memory until dropped, even if it is unloaded.
///
/// For code that is built in, it does nothing.
pub(crate) struct ModulePin {
    reference: Option<Reference>,
}

impl ModulePin {
    /// Keeps `owner`. May sleep.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while the parameters of the module are being parsed; `ENOMEM`; `ENOTSUPP` for a
    /// module in a kernel without sysfs: nothing else keeps its memory.
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

    /// Whether the module is being loaded, or goes. If loading fails, the loader frees the module
    /// whether or not it is used, for example by a task that has a disk of it open. It may have
    /// failed already: a worker may drop what the module has dropped.
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

    /// Waits until nothing but the loader uses a module that is being loaded. May sleep.
    ///
    /// Only code that is built in can do without, see `DiskOperations`: C does not say when a
    /// reference to a module is put.
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
    // Not a part of the module that drops it.
    #[inline(never)]
    fn drop(&mut self) {
        #[cfg(not(MODULE))]
        if let Some(reference) = self.reference.take() {
            late::give_up(reference);
        }
    }
}
