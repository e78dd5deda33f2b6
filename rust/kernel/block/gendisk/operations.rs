// SPDX-License-Identifier: GPL-2.0

//! What C finds at a disk until it has released it.
//!
//! A disk that is open keeps its tag set. C does not: a task that submits I/O runs the hardware
//! queue after it has given the request away, and to do so looks at the tag set, with no reference
//! to the use of the disk. Meanwhile the request may have ended, and the disk be removed. But the
//! task, or the task on whose behalf it does that, has the disk open. That is not so for a page of
//! swap that ends before `submit_bio` has returned while swapping is turned off, nor for a work
//! item that such a task queues for a hardware queue. Only
//! `patches/upstream/blk-mq-submit-reference.patch` makes those safe, for drivers in C as well.
//!
//! A task that closes a disk gives up the reference to the driver's module first, then the one to
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
    module_pin::ModulePin,
    prelude::*,
    sync::Arc, //
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
    table: NonNull<Table>,
}

/// The operations as C knows them, and what else they are about.
#[repr(C)]
struct Table {
    /// Comes first, so that a pointer to it is one to all of the table.
    operations: bindings::block_device_operations,
    /// Protected by `open_mutex` of the disk.
    opens: Opens,
}

/// How often a disk is open, and what it keeps meanwhile.
struct Opens {
    count: usize,
    /// The tag set, until the disk is removed and closed.
    tag_set: Option<Kept>,
    /// The disk was removed, so the last task that closes it gives up the tag set.
    removed: bool,
    module: imp::Held,
}

impl Opens {
    /// # Safety
    ///
    /// The disk was not removed.
    unsafe fn open(&mut self) -> Result {
        // SAFETY: By the safety requirement, the module is there, or built in.
        unsafe { self.module.get() }?;
        self.count += 1;
        Ok(())
    }

    /// # Safety
    ///
    /// Pairs with a success of [`Self::open`].
    unsafe fn close(&mut self) {
        self.count -= 1;
        if self.count == 0 && self.removed {
            // C holds a lock of the disk, which the driver's data in the set must not be dropped
            // under. The code that drops it is in the module, so that goes later.
            memalloc_noio(|| self.tag_set = None);
        }
        // SAFETY: By the safety requirement, there is a reference for this open, or all of them
        // were put when the disk was removed.
        unsafe { self.module.put() };
    }
}

/// A reference to a tag set, of whatever driver.
///
/// # Invariants
///
/// It owns `set`, which `drop` drops.
struct Kept {
    set: *const c_void,
    drop: unsafe fn(*const c_void),
}

impl Kept {
    fn new<T: Operations>(set: Arc<TagSet<T>>) -> Self {
        /// # Safety
        ///
        /// The caller gives up `set`, which comes from [`Arc::into_raw`].
        unsafe fn drop_set<T: Operations>(set: *const c_void) {
            // SAFETY: By the safety requirement.
            drop(unsafe { Arc::<TagSet<T>>::from_raw(set.cast()) });
        }

        // INVARIANT: `into_raw` gives it up.
        Self {
            set: Arc::into_raw(set).cast(),
            drop: drop_set::<T>,
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. It is not used again.
        unsafe { (self.drop)(self.set) };
    }
}

impl DiskOperations {
    /// Makes the operations of a disk on `tag_set` that `owner` drives.
    pub(super) fn new<T: Operations>(
        owner: &'static ThisModule,
        tag_set: Arc<TagSet<T>>,
    ) -> Result<Self> {
        let table = Table {
            operations: imp::operations(owner),
            opens: Opens {
                count: 0,
                tag_set: Some(Kept::new(tag_set)),
                removed: false,
                module: imp::Held::new(owner),
            },
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
            table: unsafe { NonNull::new_unchecked(table.cast_mut().cast()) },
        }
    }

    /// Hands the operations to C.
    pub(super) fn into_raw(self) -> *const bindings::block_device_operations {
        ManuallyDrop::new(self).table.as_ptr().cast()
    }

    /// Gives up the tag set of a disk that was removed, unless a task has the disk open: then the
    /// last that closes it does so.
    ///
    /// If the module is not live, loading it may fail, or have failed, and then it is freed whether
    /// or not a task has the disk open. So the tag set is given up at once, and the module is not
    /// kept by those tasks any more.
    ///
    /// # Safety
    ///
    /// `disk` was added and removed, and its operations are what [`Self::into_raw`] returned. `pin`
    /// keeps its module.
    pub(super) unsafe fn remove(disk: NonNull<bindings::gendisk>, pin: &ModulePin) {
        let disk = disk.as_ptr();
        // SAFETY: By the safety requirement.
        let mutex = unsafe { &raw mut (*disk).open_mutex };
        // SAFETY: By the safety requirement.
        let table: *mut Table = unsafe { (*disk).fops }.cast_mut().cast();
        // SAFETY: The mutex is that of a disk that is there.
        unsafe { bindings::mutex_lock(mutex) };
        // SAFETY: The mutex is held, so no other task looks at it.
        let opens = unsafe { &mut (*table).opens };
        opens.removed = true;
        let count = opens.count;
        let not_live = pin.is_not_live();
        let set = if count == 0 || not_live {
            opens.tag_set.take()
        } else {
            None
        };
        if not_live {
            // SAFETY: There are as many references as the disk is open, and `pin` keeps the module.
            unsafe { opens.module.put_all(count) };
        }
        // SAFETY: It was locked above.
        unsafe { bindings::mutex_unlock(mutex) };
        if not_live {
            imp::wait_for_openers(pin, count);
            // SAFETY: By the safety requirement; all I/O has ended, and its submitters are gone.
            unsafe { imp::forget_driver(disk) };
        }
        drop(set);
    }

    /// Gives up a disk that was added and removed. If a task has it open, it is released when
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

/// Called by C when a disk, or a partition of it, is opened. Like
/// all functions here that C calls, it is not generic: such code is part of the module that uses
/// it.
///
/// # Safety
///
/// The operations of `disk`, which was not removed, are a [`Table`]; the caller has its
/// `open_mutex`.
#[inline(never)]
unsafe extern "C" fn open(disk: *mut bindings::gendisk, _mode: bindings::blk_mode_t) -> c_int {
    // SAFETY: By the safety requirement.
    let table: *mut Table = unsafe { (*disk).fops }.cast_mut().cast();
    // SAFETY: By the safety requirement, no other task looks at it.
    let opens = unsafe { &mut (*table).opens };
    // SAFETY: By the safety requirement.
    unsafe { opens.open() }.map_or_else(Error::to_errno, |()| 0)
}

/// Called by C when a disk, or a partition of it, is closed.
///
/// # Safety
///
/// As for [`open`], but the disk may have been removed.
#[inline(never)]
unsafe extern "C" fn release(disk: *mut bindings::gendisk) {
    // SAFETY: By the safety requirement.
    let table: *mut Table = unsafe { (*disk).fops }.cast_mut().cast();
    // SAFETY: By the safety requirement, no other task looks at it.
    let opens = unsafe { &mut (*table).opens };
    // SAFETY: C calls this once for each success of `open`.
    unsafe { opens.close() };
}

/// Where this code is built in, it frees the operations when the disk is released. It also counts
/// how often the disk is open, and holds the module as often, as C would.
#[cfg(not(MODULE))]
mod imp {
    use super::*;

    /// The references to the module that a disk has, one for each task that has it open.
    pub(super) struct Held {
        owner: *mut bindings::module,
        /// All of them were put.
        released: bool,
    }

    impl Held {
        pub(super) fn new(owner: &'static ThisModule) -> Self {
            Self {
                owner: owner.as_ptr(),
                released: false,
            }
        }

        /// Takes a reference, unless the module is going.
        ///
        /// # Safety
        ///
        /// The module is there, or built in.
        pub(super) unsafe fn get(&mut self) -> Result {
            // SAFETY: By the safety requirement.
            if unsafe { module_get(self.owner) } {
                Ok(())
            } else {
                Err(ENXIO)
            }
        }

        /// # Safety
        ///
        /// Pairs with a success of [`Self::get`].
        pub(super) unsafe fn put(&mut self) {
            if !self.released {
                // SAFETY: By the safety requirement. So the module is there, or built in.
                unsafe { module_put(self.owner) };
            }
        }

        /// Puts all references.
        ///
        /// # Safety
        ///
        /// There are `count` of them, and the module is there, or built in.
        pub(super) unsafe fn put_all(&mut self, count: usize) {
            self.released = true;
            for _ in 0..count {
                // SAFETY: By the safety requirement.
                unsafe { module_put(self.owner) };
            }
        }
    }

    /// Waits until a task that was in the middle of submitting I/O to a removed disk has left the
    /// block layer, which looks at the tag set but does not sleep after the last request has ended.
    pub(super) fn wait_for_openers(_pin: &ModulePin, count: usize) {
        // A disk of a module that is unloaded is not open.
        if count != 0 {
            // SAFETY: The caller may sleep.
            unsafe { bindings::rcu_tasks_synchronize() };
        }
    }

    /// Leaves nothing of the module at the queue of a disk: a disk that uses this one, as one of
    /// several paths, asks the queue for its operations at any time.
    ///
    /// # Safety
    ///
    /// `disk` was removed. No hardware queue of it is used any more.
    pub(super) unsafe fn forget_driver(disk: *mut bindings::gendisk) {
        /// The operations of a queue that has no driver.
        struct NoDriver(bindings::blk_mq_ops);

        // SAFETY: Nothing writes to it.
        unsafe impl Sync for NoDriver {}

        static NO_DRIVER: NoDriver = NoDriver(pin_init::zeroed());

        // SAFETY: By the safety requirement, the caller has a reference to the disk, which has one
        // to its queue.
        let queue = unsafe { (*disk).queue };
        // SAFETY: As above, for the field projection.
        let ops = unsafe { &raw mut (*queue).mq_ops };
        // SAFETY: As above. Others read the pointer at the same time, so it is written at once.
        unsafe { ops.write_volatile(&raw const NO_DRIVER.0) };
    }

    /// # Safety
    ///
    /// `owner` is a module that is there, or null.
    unsafe fn module_get(owner: *mut bindings::module) -> bool {
        #[cfg(CONFIG_MODULE_UNLOAD)]
        // SAFETY: By the safety requirement.
        return unsafe { bindings::try_module_get(owner) };
        // A module stays once it is live, and one that is coming is not held by others.
        #[cfg(not(CONFIG_MODULE_UNLOAD))]
        {
            let _ = owner;
            true
        }
    }

    /// # Safety
    ///
    /// The caller gives up a reference to `owner`, or that is null.
    unsafe fn module_put(owner: *mut bindings::module) {
        #[cfg(CONFIG_MODULE_UNLOAD)]
        // SAFETY: By the safety requirement.
        unsafe {
            bindings::module_put(owner)
        };
        #[cfg(not(CONFIG_MODULE_UNLOAD))]
        let _ = owner;
    }

    pub(super) fn operations(_owner: &'static ThisModule) -> bindings::block_device_operations {
        bindings::block_device_operations {
            open: Some(open),
            release: Some(release),
            free_disk: Some(free_disk),
            ..pin_init::zeroed()
        }
    }

    /// Called by C when a disk that was added is released.
    ///
    /// # Safety
    ///
    /// The operations of `disk` are given up.
    #[inline(never)]
    unsafe extern "C" fn free_disk(disk: *mut bindings::gendisk) {
        // SAFETY: By the safety requirement.
        let table = unsafe { (*disk).fops };
        // SAFETY: By the safety requirement.
        drop(unsafe { DiskOperations::from_raw(table) });
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
/// released. C holds the module while a disk is open. The operations are freed if the disk is
/// released at once. Those of a disk that is removed while a task has it open are never freed.
#[cfg(MODULE)]
mod imp {
    use super::*;

    /// C has the references.
    pub(super) struct Held;

    impl Held {
        pub(super) fn new(_owner: &'static ThisModule) -> Self {
            Self
        }

        /// # Safety
        ///
        /// None.
        pub(super) unsafe fn get(&mut self) -> Result {
            Ok(())
        }

        /// # Safety
        ///
        /// None.
        pub(super) unsafe fn put(&mut self) {}

        /// # Safety
        ///
        /// None.
        pub(super) unsafe fn put_all(&mut self, _count: usize) {}
    }

    /// Waits until no task has a disk of the module open, nor a reference to the module from when
    /// it had: they cannot be told apart.
    pub(super) fn wait_for_openers(pin: &ModulePin, _count: usize) {
        pin.wait_for_early_users();
    }

    /// # Safety
    ///
    /// None: no task has the disk open, so its queue is not asked for anything.
    pub(super) unsafe fn forget_driver(_disk: *mut bindings::gendisk) {}

    pub(super) fn operations(owner: &'static ThisModule) -> bindings::block_device_operations {
        bindings::block_device_operations {
            owner: owner.as_ptr(),
            open: Some(open),
            release: Some(release),
            ..pin_init::zeroed()
        }
    }

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
