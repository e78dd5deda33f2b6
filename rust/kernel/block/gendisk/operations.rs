// SPDX-License-Identifier: GPL-2.0

//! What C finds at a disk until it has released it.
//!
//! Whoever has a disk open gives up their reference to the driver's module first, then the one to
//! the disk; when that is released, C looks for its operations once more. The module may be gone by
//! then. So the operations are not in its memory, nor is what they point to.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    prelude::*, //
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// The operations of a disk: C's `struct block_device_operations`.
///
/// # Invariants
///
/// It owns `table`, which was leaked from a box.
pub(super) struct DiskOperations {
    table: NonNull<bindings::block_device_operations>,
}

impl DiskOperations {
    /// Makes the operations of a disk that `owner` drives.
    pub(super) fn new(owner: &'static ThisModule) -> Result<Self> {
        let table = bindings::block_device_operations {
            owner: owner.as_ptr(),
            free_disk: imp::FREE_DISK,
            ..pin_init::zeroed()
        };
        // INVARIANT: Just leaked.
        Ok(Self {
            table: NonNull::from(KBox::leak(KBox::new(table, GFP_KERNEL)?)),
        })
    }

    /// Takes back the operations.
    ///
    /// # Safety
    ///
    /// [`Self::into_raw`] returned `table`, which the caller gives up.
    pub(super) unsafe fn from_raw(table: *const bindings::block_device_operations) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement, it is not null.
            table: unsafe { NonNull::new_unchecked(table.cast_mut()) },
        }
    }

    /// Hands the operations to C.
    pub(super) fn into_raw(self) -> *const bindings::block_device_operations {
        ManuallyDrop::new(self).table.as_ptr()
    }

    /// Gives up a disk that was added and removed. If somebody has it open, it is released when
    /// they close it.
    ///
    /// # Safety
    ///
    /// The caller gives up a reference to `disk`, and its operations, which [`Self::into_raw`]
    /// returned.
    pub(super) unsafe fn put_disk(disk: NonNull<bindings::gendisk>) {
        // SAFETY: By the safety requirement.
        unsafe { imp::put_disk(disk.as_ptr()) };
    }
}

impl Drop for DiskOperations {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        drop(unsafe { KBox::from_raw(self.table.as_ptr()) });
    }
}

/// Where this code is built in, it frees the operations when the disk is released.
#[cfg(not(MODULE))]
mod imp {
    use super::*;

    pub(super) const FREE_DISK: Option<unsafe extern "C" fn(*mut bindings::gendisk)> =
        Some(free_disk);

    /// Called by C when a disk that was added is released. It is not generic, since such code is
    /// part of the module that uses it.
    ///
    /// # Safety
    ///
    /// The operations of `disk` are given up.
    #[inline(never)]
    unsafe extern "C" fn free_disk(disk: *mut bindings::gendisk) {
        // SAFETY: By the safety requirement.
        drop(unsafe { DiskOperations::from_raw((*disk).fops) });
    }

    /// # Safety
    ///
    /// As for [`DiskOperations::put_disk`].
    pub(super) unsafe fn put_disk(disk: *mut bindings::gendisk) {
        // SAFETY: By the safety requirement. The operations go to `free_disk`.
        unsafe { bindings::put_disk(disk) };
    }
}

/// Where this code is a part of the driver's module, there is nothing to be called when a disk is
/// released. So the operations are freed if that happens at once. Those of a disk that is removed
/// while somebody has it open are never freed.
#[cfg(MODULE)]
mod imp {
    use super::*;

    pub(super) const FREE_DISK: Option<unsafe extern "C" fn(*mut bindings::gendisk)> = None;

    /// # Safety
    ///
    /// As for [`DiskOperations::put_disk`].
    pub(super) unsafe fn put_disk(disk: *mut bindings::gendisk) {
        // SAFETY: By the safety requirement.
        let table = unsafe { (*disk).fops };
        // SAFETY: By the safety requirement.
        if unsafe { bindings::blk_put_disk(disk) } {
            // SAFETY: By the safety requirement; the disk that had them is gone.
            drop(unsafe { DiskOperations::from_raw(table) });
        }
    }
}
