// SPDX-License-Identifier: GPL-2.0

//! What C finds at a disk until it releases it.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    block::mq::{
        DiskData,
        Operations,
        TagSet, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

/// What C finds at a disk: its operations, with the driver's data.
///
/// It outlives the disk, which has a reference to it from being built to being released.
#[pin_data]
pub(super) struct Hull<T: Operations> {
    operations: bindings::block_device_operations,
    /// Whether the release of the disk gives up a reference to the owner.
    keeps_owner: Atomic<bool>,
    #[pin]
    disk_data: DiskData<T>,
}

// SAFETY: The operations do not change, and the driver's data is `Send`.
unsafe impl<T: Operations> Send for Hull<T> {}

// SAFETY: The operations do not change, and the driver's data is `Sync`.
unsafe impl<T: Operations> Sync for Hull<T> {}

impl<T: Operations> Hull<T> {
    pub(super) fn new(
        owner: &'static ThisModule,
        queue_data: impl PinInit<T::QueueData, Error>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            operations: bindings::block_device_operations {
                owner: owner.as_ptr(),
                free_disk: Some(Self::free_disk),
                ..pin_init::zeroed()
            },
            keeps_owner: Atomic::new(false),
            disk_data <- TagSet::disk_data(queue_data),
        }? Error)
    }

    pub(super) fn operations(&self) -> *const bindings::block_device_operations {
        &self.operations
    }

    /// The driver's module, or null.
    pub(super) fn owner(&self) -> *mut bindings::module {
        self.operations.owner
    }

    /// What the driver keeps for the disk.
    pub(super) fn queue_data(&self) -> &T::QueueData {
        self.disk_data.data()
    }

    /// The same with what the block crate keeps for the disk.
    pub(super) fn disk_data(&self) -> &DiskData<T> {
        &self.disk_data
    }

    /// The same, as `queuedata` of C's queue.
    pub(super) fn disk_data_ptr(&self) -> *mut c_void {
        (&raw const self.disk_data).cast_mut().cast()
    }

    /// Keeps the owner until the disk is released, if it is there to stay.
    pub(super) fn keep_owner(&self) -> bool {
        // SAFETY: The owner is this driver's module, which runs, or null.
        let kept = unsafe { bindings::blk_owner_get(self.owner()) };
        // Relaxed: putting the reference to the disk orders it before the release.
        self.keeps_owner.store(kept, Relaxed);
        kept
    }

    /// Called by C when a disk that was added is released.
    ///
    /// # Safety
    ///
    /// The `private_data` of `disk` is a reference to a hull, which is given up.
    unsafe extern "C" fn free_disk(disk: *mut bindings::gendisk) {
        // SAFETY: By the safety requirement.
        let hull = unsafe { Arc::from_raw((*disk).private_data.cast::<Self>()) };
        let owner = hull.keeps_owner.load(Relaxed).then_some(hull.owner());
        drop(hull);
        if let Some(owner) = owner {
            // SAFETY: `keep_owner` took the reference.
            unsafe { bindings::blk_owner_put(owner) };
        }
    }
}
