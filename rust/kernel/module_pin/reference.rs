// SPDX-License-Identifier: GPL-2.0

//! A reference that keeps a module in memory.

#[cfg(all(CONFIG_MODULES, CONFIG_SYSFS))]
use crate::bindings::kobject;
use crate::{
    bindings,
    prelude::*, //
};
use core::ptr::NonNull;

/// A reference to the sysfs directory of a module: the module is freed after the last one is put.
///
/// # Invariants
///
/// It owns a reference to the directory of `owner`.
pub(super) struct Reference {
    owner: NonNull<bindings::module>,
}

// SAFETY: A reference is not tied to a thread.
unsafe impl Send for Reference {}

// SAFETY: A shared reference only reads what the loader may change at any time.
unsafe impl Sync for Reference {}

#[cfg(all(CONFIG_MODULES, CONFIG_SYSFS))]
impl Reference {
    /// Takes a reference.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while the parameters of the module are being parsed: the directory does not exist
    /// yet.
    ///
    /// # Safety
    ///
    /// The code of `owner` is running.
    pub(super) unsafe fn new(owner: NonNull<bindings::module>) -> Result<Self> {
        // SAFETY: By the safety requirement, the module is in memory.
        let directory = unsafe { &raw mut (*owner.as_ptr()).mkobj.kobj };
        // SAFETY: As above. The loader sets the bit before it runs the initialisation.
        if unsafe { kobject::state_initialized_raw(directory) } == 0 {
            return Err(EAGAIN);
        }
        // SAFETY: The directory is initialised, and not released while the module's code is
        // running.
        unsafe { bindings::kobject_get(directory) };
        // INVARIANT: The reference was just taken.
        Ok(Self { owner })
    }

    /// Returns whether the module is being loaded or unloaded.
    pub(super) fn is_not_live(&self) -> bool {
        self.state() != bindings::module_state_MODULE_STATE_LIVE
    }

    fn state(&self) -> bindings::module_state {
        // SAFETY: By the type invariant, the module is in memory.
        let state = unsafe { &raw const (*self.owner.as_ptr()).state };
        // SAFETY: As above. The loader may change the state concurrently, so the read is volatile.
        unsafe { state.read_volatile() }
    }

    /// Returns whether the module is being loaded or has failed to load, and has users other than
    /// the loader. A module that is being unloaded has no users.
    #[cfg(MODULE)]
    pub(super) fn is_used_early(&self) -> bool {
        #[cfg(CONFIG_MODULE_UNLOAD)]
        {
            // SAFETY: By the type invariant, the module is in memory.
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

    /// Returns whether this is a reference to the module at `owner`.
    pub(super) fn is_of(&self, owner: *const bindings::module) -> bool {
        core::ptr::eq(self.owner.as_ptr(), owner)
    }
}

#[cfg(all(CONFIG_MODULES, CONFIG_SYSFS))]
impl Drop for Reference {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the module is in memory.
        let directory = unsafe { &raw mut (*self.owner.as_ptr()).mkobj.kobj };
        // SAFETY: By the type invariant, the reference is ours, and it is not used after this.
        unsafe { bindings::kobject_put(directory) };
    }
}

/// Without sysfs, nothing keeps a module in memory; without module support, there is no module.
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
