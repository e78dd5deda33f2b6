// SPDX-License-Identifier: GPL-2.0

//! What C finds at a disk until it has released it.
//!
//! An opener of a disk keeps its tag set. C does not: a task that submits I/O runs the hardware queue
//! after it has given the request away, and to do so looks at the tag set, with no reference to the
//! use of the disk. Meanwhile the request may have ended, and the disk be removed. But the task, or
//! the task on whose behalf it does that, has the disk open.
//!
//! Whoever has a disk open gives up their reference to the driver's module first, then the one to
//! the disk; when that is released, C looks for its operations once more. The module may be gone by
//! then. So the operations are not in its memory, nor is what they point to.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    block::mq::{
        memalloc_noio,
        Operations,
        TagSet, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
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
    /// Makes the operations of a disk that `owner` drives, whose `private_data` is to point to its
    /// tag set.
    pub(super) fn new<T: Operations>(owner: &'static ThisModule) -> Result<Self> {
        let table = bindings::block_device_operations {
            open: Some(open::<T>),
            release: Some(release::<T>),
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

/// Called by C when a disk is opened, also for a partition of it. It is a part of the driver's
/// module, which C holds until after [`release`].
///
/// # Safety
///
/// `private_data` of `disk` comes from [`Arc::as_ptr`] of a tag set that stays until the disk is
/// removed.
unsafe extern "C" fn open<T: Operations>(
    disk: *mut bindings::gendisk,
    _mode: bindings::blk_mode_t,
) -> c_int {
    // SAFETY: By the safety requirement.
    let set = unsafe { (*disk).private_data }.cast::<TagSet<T>>();
    // SAFETY: By the safety requirement. C opens a disk under a lock, under which the removal looks
    // for openers later, so this one is not removed yet.
    let set: Arc<_> = unsafe { ArcBorrow::from_raw(set) }.into();
    // `release` takes it back.
    let _ = Arc::into_raw(set);
    0
}

/// Called by C once for each success of [`open`].
///
/// # Safety
///
/// As for [`open`].
unsafe extern "C" fn release<T: Operations>(disk: *mut bindings::gendisk) {
    // SAFETY: By the safety requirement.
    let set = unsafe { (*disk).private_data }.cast::<TagSet<T>>();
    // SAFETY: `open` has left a reference for this.
    let set = unsafe { Arc::from_raw(set) };
    // C holds a lock of the disk, which the driver's data in the set must not be dropped under.
    memalloc_noio(|| drop(set));
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
