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
/// `table` was leaked from a box. It is owned, unless it is never freed.
pub(super) struct DiskOperations {
    table: NonNull<bindings::block_device_operations>,
}

impl DiskOperations {
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
}

/// Where this code is built in, each disk has operations of its own.
#[cfg(not(MODULE))]
mod imp {
    use super::*;

    impl DiskOperations {
        /// Makes the operations of a disk that `owner` drives.
        pub(in super::super) fn new(owner: &'static ThisModule) -> Result<Self> {
            let table = bindings::block_device_operations {
                owner: owner.as_ptr(),
                free_disk: Some(free_disk),
                ..pin_init::zeroed()
            };
            // INVARIANT: It is owned.
            Ok(Self {
                table: NonNull::from(KBox::leak(KBox::new(table, GFP_KERNEL)?)),
            })
        }
    }

    impl Drop for DiskOperations {
        fn drop(&mut self) {
            // SAFETY: By the type invariant.
            drop(unsafe { KBox::from_raw(self.table.as_ptr()) });
        }
    }

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
}

/// Where this code is a part of the driver's module, there is nothing to be called when a disk is
/// released. So all disks of the module have the same operations, which are never freed.
#[cfg(MODULE)]
mod imp {
    use super::*;
    use crate::sync::SetOnce;

    static TABLE: SetOnce<Table> = SetOnce::new();

    #[derive(Clone, Copy)]
    struct Table(NonNull<bindings::block_device_operations>);

    // SAFETY: The operations do not change.
    unsafe impl Send for Table {}

    // SAFETY: As above.
    unsafe impl Sync for Table {}

    impl DiskOperations {
        /// Makes the operations of a disk that `owner`, which is this module, drives.
        pub(in super::super) fn new(owner: &'static ThisModule) -> Result<Self> {
            if let Some(Table(table)) = TABLE.copy() {
                // INVARIANT: It is never freed.
                return Ok(Self { table });
            }
            let table = bindings::block_device_operations {
                owner: owner.as_ptr(),
                ..pin_init::zeroed()
            };
            let table = NonNull::from(KBox::leak(KBox::new(table, GFP_KERNEL)?));
            // If somebody else was faster, there are two of them.
            TABLE.populate(Table(table));
            // INVARIANT: It is never freed.
            Ok(Self { table })
        }
    }
}
