// SPDX-License-Identifier: GPL-2.0

//! The operations of a disk, which C uses until it has released the disk.
//!
//! A disk that is open holds a reference to its tag set, if it has one, unlike in C. A task that
//! submits I/O runs the hardware queue after it has inserted the request, and accesses the tag set
//! to do so without a reference to `q_usage_counter`. Meanwhile the request may have completed, and
//! the disk may have been removed. But the task, or the task on whose behalf it submits, has the
//! disk open. There are three exceptions: a page of swap whose I/O completes before `submit_bio`
//! has returned, while swapping is turned off; a work item that such a task queues for a hardware
//! queue; and the worker that submits the writes that wait for other writes to their zone. Only
//! "blk-mq: keep a reference to the queue while a submitter runs it" makes those safe, for drivers
//! in C as well.
//!
//! A task that closes a disk puts the reference to the driver's module first, then the reference to
//! the disk. When the disk is released, C accesses its operations once more. The module may have
//! been freed by then. Neither the operations nor what they point to may therefore be in its
//! memory.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    block::{
        mq::{
            memalloc_noio,
            DiskGate,
            IoctlCaller,
            Operations,
            TagSet, //
        },
        zone::ZoneReports,
        Sector, //
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

/// The operations as C knows them, followed by the state of the disk.
#[repr(C)]
struct Table {
    /// Comes first, so that a pointer to it is also a pointer to the table.
    operations: bindings::block_device_operations,
    /// Protected by `open_mutex` of the disk.
    opens: OpenState,
    /// The zone reports, if the disk is zoned.
    zone_reports: Option<Pin<KBox<ZoneReports>>>,
    /// The ioctls, if the driver has any.
    ioctls: Option<Ioctls>,
}

/// The ioctls of a disk.
///
/// # Invariants
///
/// `gate` is open for a disk of the driver that `callback` is of.
struct Ioctls {
    callback: Ioctl,
    gate: Arc<DiskGate>,
}

/// The number of times a disk is open, with the references that are held meanwhile.
struct OpenState {
    count: usize,
    /// The tag set, if there is one, until the disk is removed and closed.
    tag_set: Option<AnyTagSet>,
    /// The disk was removed, so the last close drops the tag set.
    removed: bool,
    module: imp::ModuleReferences,
}

impl OpenState {
    /// # Safety
    ///
    /// The disk was not removed.
    unsafe fn open(&mut self) -> Result {
        // SAFETY: By the safety requirement, the module is in memory or built in.
        unsafe { self.module.get() }?;
        self.count += 1;
        Ok(())
    }

    /// # Safety
    ///
    /// Pairs with a successful [`Self::open`].
    unsafe fn close(&mut self) {
        self.count -= 1;
        if self.count == 0 && self.removed {
            // C holds `open_mutex`, under which the driver's data in the tag set must not be
            // dropped; in a NOIO scope, a work item drops it. The module contains the code that
            // drops it, so the reference to the module is put afterwards.
            memalloc_noio(|| self.tag_set = None);
        }
        // SAFETY: By the safety requirement, there is a reference for this open, or all references
        // were put when the disk was removed.
        unsafe { self.module.put() };
    }
}

/// The function that C passes the bios of a disk to.
///
/// Its safety requirement: C calls it as `submit_bio`, for a disk of the driver that it is of.
pub(super) type SubmitBio = unsafe extern "C" fn(*mut bindings::bio);

/// Calls a driver for an ioctl.
///
/// Its safety requirement: the queue is that of a disk of the driver, of which nothing is dropped
/// meanwhile.
pub(super) type Ioctl =
    unsafe fn(NonNull<bindings::request_queue>, IoctlCaller, u32, usize) -> Result<u32>;

/// A reference to a tag set of any driver.
///
/// # Invariants
///
/// It owns `set`, which `drop` drops.
// Public as the result of a function of `Base`, but not exported.
#[allow(unreachable_pub)]
pub struct AnyTagSet {
    set: *const c_void,
    drop: unsafe fn(*const c_void),
}

impl AnyTagSet {
    pub(super) fn new<T: Operations>(set: Arc<TagSet<T>>) -> Self {
        /// # Safety
        ///
        /// The caller passes ownership of `set`, which [`Arc::into_raw`] returned.
        unsafe fn drop_set<T: Operations>(set: *const c_void) {
            // SAFETY: By the safety requirement.
            drop(unsafe { Arc::<TagSet<T>>::from_raw(set.cast()) });
        }

        // INVARIANT: `into_raw` passes ownership.
        Self {
            set: Arc::into_raw(set).cast(),
            drop: drop_set::<T>,
        }
    }
}

impl Drop for AnyTagSet {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and it is not used again.
        unsafe { (self.drop)(self.set) };
    }
}

impl DiskOperations {
    /// Creates the operations of a disk whose driver is `owner`. It is on `tag_set`, or gets bios
    /// by `submit_bio`. If it is zoned, it has `zone_reports`. `callback` gets its ioctls.
    pub(super) fn new(
        owner: &'static ThisModule,
        tag_set: Option<AnyTagSet>,
        submit_bio: Option<SubmitBio>,
        zone_reports: Option<Pin<KBox<ZoneReports>>>,
        callback: Option<Ioctl>,
    ) -> Result<Self> {
        let ioctls = match callback {
            // INVARIANT: The gate is closed until `open_gate` is called.
            Some(callback) => Some(Ioctls {
                callback,
                gate: DiskGate::new()?,
            }),
            None => None,
        };
        let table = Table {
            operations: bindings::block_device_operations {
                submit_bio,
                report_zones: zone_reports.is_some().then_some(report_zones),
                ioctl: ioctls.is_some().then_some(ioctl),
                compat_ioctl: ioctls.is_some().then_some(compat_ioctl),
                ..imp::operations(owner)
            },
            opens: OpenState {
                count: 0,
                tag_set,
                removed: false,
                module: imp::ModuleReferences::new(owner),
            },
            zone_reports,
            ioctls,
        };
        // INVARIANT: The table was just leaked from a box.
        Ok(Self {
            table: NonNull::from(KBox::leak(KBox::new(table, GFP_KERNEL)?)),
        })
    }

    /// Lets tasks access the disk with that queue.
    ///
    /// # Safety
    ///
    /// The operations are those of a disk with that queue, of the driver that they were made for,
    /// which is not added yet. Nothing of it is dropped before the gate is closed.
    pub(super) unsafe fn open_gate(&self, queue: NonNull<bindings::request_queue>) {
        // SAFETY: By the type invariant. The field does not change.
        if let Some(ioctls) = unsafe { &(*self.table.as_ptr()).ioctls } {
            // INVARIANT: By the safety requirement.
            //
            // SAFETY: By the safety requirement. The driver has ioctls, so its disks have requests.
            unsafe { ioctls.gate.open(queue) };
        }
    }

    /// Returns the gate of a disk, if its driver has ioctls.
    ///
    /// # Safety
    ///
    /// The operations of `disk` are what [`Self::into_raw`] returned, and are not freed meanwhile.
    pub(super) unsafe fn gate(disk: NonNull<bindings::gendisk>) -> Option<Arc<DiskGate>> {
        // SAFETY: By the safety requirement.
        let table: *const Table = unsafe { (*disk.as_ptr()).fops }.cast();
        // SAFETY: By the safety requirement. The field does not change.
        let ioctls = unsafe { &(*table).ioctls };
        Some(ioctls.as_ref()?.gate.clone())
    }

    /// Takes ownership of operations that were passed to C.
    ///
    /// # Safety
    ///
    /// [`Self::into_raw`] returned `table`, of which the caller passes ownership.
    pub(super) unsafe fn from_raw(table: *const bindings::block_device_operations) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement, it is not null.
            table: unsafe { NonNull::new_unchecked(table.cast_mut().cast()) },
        }
    }

    /// Passes ownership of the operations to C.
    pub(super) fn into_raw(self) -> *const bindings::block_device_operations {
        ManuallyDrop::new(self).table.as_ptr().cast()
    }

    /// Waits for the zone reports and the ioctls of a disk that was removed. Drops its tag set,
    /// unless a task has the disk open: the last close drops it then.
    ///
    /// If the module is not live, loading it may fail or have failed, in which case the loader
    /// frees it even if a task has the disk open. The tag set is therefore dropped at once, and so
    /// are the references to the module that those tasks hold.
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
        // SAFETY: By the safety requirement. The field does not change.
        if let Some(zone_reports) = unsafe { &(*table).zone_reports } {
            zone_reports.stop();
        }
        // SAFETY: As above.
        if let Some(ioctls) = unsafe { &(*table).ioctls } {
            ioctls.gate.close();
        }
        // SAFETY: The mutex is that of a valid disk.
        unsafe { bindings::mutex_lock(mutex) };
        // SAFETY: The mutex is held, so no other task accesses it.
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
            // SAFETY: There is one reference for each open of the disk, and `pin` keeps the module.
            unsafe { opens.module.put_all(count) };
        }
        // SAFETY: It was locked above.
        unsafe { bindings::mutex_unlock(mutex) };
        if not_live {
            imp::wait_for_openers(pin, count);
            // SAFETY: By the safety requirement. All I/O has ended, and its submitters have left
            // the block layer.
            unsafe { imp::clear_mq_ops(disk) };
        }
        drop(set);
    }

    /// Puts a disk that was added and removed. If a task has it open, C releases it when the task
    /// closes it.
    ///
    /// # Safety
    ///
    /// The caller passes ownership of a reference to `disk`, and of its operations, which
    /// [`Self::into_raw`] returned.
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

/// Called by C when a disk, or a partition of it, is opened.
///
/// Like all functions in this file that C calls, it is not generic: generic code is part of the
/// module that uses it.
///
/// # Safety
///
/// The operations of `disk`, which was not removed, are a [`Table`]; the caller holds its
/// `open_mutex`.
#[inline(never)]
unsafe extern "C" fn open(disk: *mut bindings::gendisk, _mode: bindings::blk_mode_t) -> c_int {
    // SAFETY: By the safety requirement.
    let table: *mut Table = unsafe { (*disk).fops }.cast_mut().cast();
    // SAFETY: By the safety requirement, no other task accesses it.
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
    // SAFETY: By the safety requirement, no other task accesses it.
    let opens = unsafe { &mut (*table).opens };
    // SAFETY: C calls this once for each successful `open`.
    unsafe { opens.close() };
}

/// Called by C for the zones of a zoned disk.
///
/// # Safety
///
/// The operations of `disk` are a [`Table`]. The caller is adding the disk, or has it open. `args`
/// is for [`bindings::blk_report_zone`].
#[inline(never)]
unsafe extern "C" fn report_zones(
    disk: *mut bindings::gendisk,
    sector: bindings::sector_t,
    count: c_uint,
    args: *mut bindings::blk_report_zones_args,
) -> c_int {
    // SAFETY: By the safety requirement.
    let table: *const Table = unsafe { (*disk).fops }.cast();
    // SAFETY: By the safety requirement. The field does not change.
    let zone_reports = unsafe { &(*table).zone_reports };
    let (Some(zone_reports), Some(disk)) = (zone_reports, NonNull::new(disk)) else {
        return EOPNOTSUPP.to_errno();
    };
    // In a NOIO scope, what would wait for this callback is left to a work item, or fails.
    let reported = memalloc_noio(|| {
        // SAFETY: By the safety requirement. The removal of a disk stops its zone reports before it
        // drops the data. While the disk is being added, its data is not dropped.
        unsafe { zone_reports.report(disk, Sector(sector), count, args) }
    });
    // The number of zones fits, as the builder has checked.
    reported.map_or_else(Error::to_errno, |count| count as c_int)
}

/// Called by C for an ioctl that the block layer does not know.
///
/// # Safety
///
/// The operations of the disk of `bdev` are a [`Table`]. The caller has it open.
#[inline(never)]
unsafe extern "C" fn ioctl(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    // SAFETY: By the safety requirement.
    unsafe { any_ioctl(bdev, mode, cmd, arg, false) }
}

/// Called by C for an ioctl of a task with an ABI of 32 bits.
///
/// # Safety
///
/// As for [`ioctl`].
#[inline(never)]
unsafe extern "C" fn compat_ioctl(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    // SAFETY: The helper only converts a number.
    let arg = unsafe { bindings::blk_compat_ptr(arg) };
    // SAFETY: By the safety requirement.
    unsafe { any_ioctl(bdev, mode, cmd, arg, true) }
}

/// Passes an ioctl to the driver.
///
/// # Safety
///
/// As for [`ioctl`].
unsafe fn any_ioctl(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    cmd: c_uint,
    arg: c_ulong,
    is_compat: bool,
) -> c_int {
    /// C's `BLK_OPEN_WRITE`, which `rust/helpers/blk.c` compares.
    const WRITE: bindings::blk_mode_t = 1 << 1;

    // SAFETY: By the safety requirement, the block device is valid, and so is its disk.
    let disk = unsafe { (*bdev).bd_disk };
    // SAFETY: As above.
    let whole = unsafe { (*disk).part0 };
    // SAFETY: By the safety requirement.
    let table: *const Table = unsafe { (*disk).fops }.cast();
    // SAFETY: By the safety requirement. The field does not change.
    let Some(ioctls) = (unsafe { &(*table).ioctls }) else {
        return ENOTTY.to_errno();
    };
    let caller = IoctlCaller {
        can_write: mode & WRITE != 0,
        is_partition: bdev != whole,
        is_compat,
    };
    let result = ioctls.gate.enter(|queue| {
        // SAFETY: By the type invariant of `Ioctls`, it is the callback of the driver of the disk,
        // of which nothing is dropped before the gate is closed.
        let value = unsafe { (ioctls.callback)(queue, caller, cmd, arg) }?;
        c_int::try_from(value).map_err(|_| EOVERFLOW)
    });
    result.unwrap_or_else(Error::to_errno)
}

/// For code that is built in. The operations are freed when C releases the disk. Each open of the
/// disk is counted and holds a reference to the module, as C would.
#[cfg(not(MODULE))]
mod imp {
    use super::*;

    /// The references to the module that a disk holds, one for each open.
    pub(super) struct ModuleReferences {
        owner: *mut bindings::module,
        /// All references were put.
        released: bool,
    }

    impl ModuleReferences {
        pub(super) fn new(owner: &'static ThisModule) -> Self {
            Self {
                owner: owner.as_ptr(),
                released: false,
            }
        }

        /// Takes a reference, unless the module is in `MODULE_STATE_GOING`.
        ///
        /// # Safety
        ///
        /// The module is in memory or built in.
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
        /// Pairs with a successful [`Self::get`].
        pub(super) unsafe fn put(&mut self) {
            if !self.released {
                // SAFETY: By the safety requirement, the reference is held, so the module is in
                // memory or built in.
                unsafe { module_put(self.owner) };
            }
        }

        /// Puts all references.
        ///
        /// # Safety
        ///
        /// There are `count` of them, and the module is in memory or built in.
        pub(super) unsafe fn put_all(&mut self, count: usize) {
            self.released = true;
            for _ in 0..count {
                // SAFETY: By the safety requirement.
                unsafe { module_put(self.owner) };
            }
        }
    }

    /// Waits until tasks that were submitting I/O to a removed disk have left the block layer.
    /// After the last request has ended, the block layer may still access the tag set there, but
    /// does not sleep.
    pub(super) fn wait_for_openers(_pin: &ModulePin, count: usize) {
        // A disk of a module that is being unloaded is not open.
        if count != 0 {
            // SAFETY: The caller may sleep.
            unsafe { bindings::rcu_tasks_synchronize() };
        }
    }

    /// Points the queue of a disk to empty operations, which are not in the module: a multipath
    /// disk that uses this one as a path may read the operations of the queue at any time.
    ///
    /// # Safety
    ///
    /// `disk` was removed. None of its hardware queues is used any more.
    pub(super) unsafe fn clear_mq_ops(disk: *mut bindings::gendisk) {
        /// The operations of a queue that has no driver.
        struct NoDriver(bindings::blk_mq_ops);

        // SAFETY: It is never written.
        unsafe impl Sync for NoDriver {}

        static NO_DRIVER: NoDriver = NoDriver(pin_init::zeroed());

        // SAFETY: By the safety requirement, the caller holds a reference to the disk, which holds
        // a reference to its queue.
        let queue = unsafe { (*disk).queue };
        // SAFETY: As above, for the field projection.
        let ops = unsafe { &raw mut (*queue).mq_ops };
        // A queue for bios has none, by which C recognises it.
        //
        // SAFETY: As above. The pointer was set when the queue was allocated.
        if unsafe { ops.read_volatile() }.is_null() {
            return;
        }
        // SAFETY: As above. Other CPUs may read the pointer concurrently, so it is written by a
        // single store.
        unsafe { ops.write_volatile(&raw const NO_DRIVER.0) };
    }

    /// # Safety
    ///
    /// `owner` is a module that is in memory, or null.
    unsafe fn module_get(owner: *mut bindings::module) -> bool {
        #[cfg(CONFIG_MODULE_UNLOAD)]
        // SAFETY: By the safety requirement.
        return unsafe { bindings::try_module_get(owner) };
        // A live module stays loaded, and a module that is being loaded has no other users.
        #[cfg(not(CONFIG_MODULE_UNLOAD))]
        {
            let _ = owner;
            true
        }
    }

    /// # Safety
    ///
    /// The caller passes ownership of a reference to `owner`, or `owner` is null.
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
    /// The caller passes ownership of the operations of `disk`.
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
        // SAFETY: By the safety requirement. `free_disk` takes ownership of the operations.
        unsafe { bindings::put_disk(disk) };
    }
}

/// For code that is part of the driver's module, where no code could be called when C releases a
/// disk. C holds a reference to the module while a disk is open. The operations are freed if
/// removing the disk also releases it. If a task has the disk open at that time, they are never
/// freed.
#[cfg(MODULE)]
mod imp {
    use super::*;

    /// Empty, since C holds the references.
    pub(super) struct ModuleReferences;

    impl ModuleReferences {
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

    /// Waits until no task has a disk of the module open, or still holds the reference to the
    /// module from having had one open: the two cannot be distinguished.
    pub(super) fn wait_for_openers(pin: &ModulePin, _count: usize) {
        pin.wait_for_early_users();
    }

    /// # Safety
    ///
    /// None: no task has the disk open, so the operations of its queue are not read.
    pub(super) unsafe fn clear_mq_ops(_disk: *mut bindings::gendisk) {}

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
            // SAFETY: By the safety requirement; the disk that used the operations has been
            // released.
            drop(unsafe { DiskOperations::from_raw(table) });
        }
    }
}
