// SPDX-License-Identifier: GPL-2.0

//! The reference that keeps the memory of a module.

use crate::{
    bindings::{
        self,
        kobject, //
    },
    prelude::*, //
};
use core::ptr::NonNull;

/// A reference to the directory of a module in sysfs: the module is freed after the last of them.
///
/// # Invariants
///
/// It owns a reference to the directory of `owner`.
pub(super) struct Reference {
    owner: NonNull<bindings::module>,
}

// SAFETY: References belong to no thread.
unsafe impl Send for Reference {}

// SAFETY: A shared one only shows what the loader may change at any time.
unsafe impl Sync for Reference {}

#[cfg(all(CONFIG_MODULES, CONFIG_SYSFS))]
impl Reference {
    /// Takes a reference.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while the parameters of the module are being parsed: there is no directory yet.
    ///
    /// # Safety
    ///
    /// The code of `owner` runs.
    pub(super) unsafe fn new(owner: NonNull<bindings::module>) -> Result<Self> {
        // SAFETY: By the safety requirement, the module is there.
        let directory = unsafe { &raw mut (*owner.as_ptr()).mkobj.kobj };
        // SAFETY: As above. The loader sets the bit before it runs the initialisation.
        if unsafe { kobject::state_initialized_raw(directory) } == 0 {
            return Err(EAGAIN);
        }
        // SAFETY: The directory is initialised, and not released while the module's code runs.
        unsafe { bindings::kobject_get(directory) };
        // INVARIANT: Just taken.
        Ok(Self { owner })
    }

    /// Whether the module is being loaded, or goes.
    pub(super) fn is_not_live(&self) -> bool {
        self.state() != bindings::module_state_MODULE_STATE_LIVE
    }

    fn state(&self) -> bindings::module_state {
        // SAFETY: By the type invariant, the module is there.
        let state = unsafe { &raw const (*self.owner.as_ptr()).state };
        // SAFETY: As above. The loader may change the state: a volatile read is what C would use.
        unsafe { state.read_volatile() }
    }

    /// Whether the module is being loaded, or has failed to, and is used by others than the loader.
    /// One that is unloaded is used by none.
    #[cfg(MODULE)]
    pub(super) fn is_used_early(&self) -> bool {
        #[cfg(CONFIG_MODULE_UNLOAD)]
        {
            // SAFETY: By the type invariant, the module is there.
            let count = unsafe { bindings::module_refcount(self.owner.as_ptr()) };
            match self.state() {
                bindings::module_state_MODULE_STATE_COMING => count > 1,
                bindings::module_state_MODULE_STATE_GOING => count > 0,
                _ => false,
            }
        }
        #[cfg(not(CONFIG_MODULE_UNLOAD))]
        false
    }

    /// Whether it is one to the module at `owner`.
    pub(super) fn is_of(&self, owner: *const bindings::module) -> bool {
        core::ptr::eq(self.owner.as_ptr(), owner)
    }
}

#[cfg(all(CONFIG_MODULES, CONFIG_SYSFS))]
impl Drop for Reference {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the module is there.
        let directory = unsafe { &raw mut (*self.owner.as_ptr()).mkobj.kobj };
        // SAFETY: By the type invariant, the reference is ours, and gone after this.
        unsafe { bindings::kobject_put(directory) };
    }
}

/// Without sysfs nothing keeps the memory of a module; without modules there is none.
#[cfg(not(all(CONFIG_MODULES, CONFIG_SYSFS)))]
impl Reference {
    /// # Safety
    ///
    /// None.
    pub(super) unsafe fn new(_owner: NonNull<bindings::module>) -> Result<Self> {
        Err(ENOTSUPP)
    }

    pub(super) fn is_not_live(&self) -> bool {
        false
    }

    #[cfg(MODULE)]
    pub(super) fn is_used_early(&self) -> bool {
        false
    }

    pub(super) fn is_of(&self, _owner: *const bindings::module) -> bool {
        false
    }
}
