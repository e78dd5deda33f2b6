// SPDX-License-Identifier: GPL-2.0

//! A disk, whose type changes when it is added to the system.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::{
    freeze::Frozen,
    interface::{
        Base,
        Driver,
        Requests, //
    },
    operations::DiskOperations, //
};
use crate::{
    bindings,
    block::{
        limits::QueueLimits,
        major::BlockMajor,
        mq::{
            memalloc_noio,
            DiskHandle,
            Operations,
            TagSet, //
        },
        Sectors,
        SECTOR_SHIFT,
        SECTOR_SIZE, //
    },
    device_class::{
        Parent,
        Table, //
    },
    error::to_result,
    late_drop::{
        self,
        LateDrop, //
    },
    module::this_module,
    module_pin::ModulePin,
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use core::ptr::NonNull;

/// The largest capacity of a disk.
pub(super) const MAX_CAPACITY: Sectors = Sectors(i64::MAX as u64 >> SECTOR_SHIFT);

/// A disk, which may have been added to the system.
///
/// Dropping it puts the C disk first, then drops the fields in this order.
///
/// # Invariants
///
/// It owns a reference to `disk`, which `alloc` of `base` has returned, and owns the table that its
/// `fops` points to. `added` is true if and only if `device_add_disk` has succeeded.
pub(super) struct Disk<B: Base> {
    pub(super) disk: NonNull<bindings::gendisk>,
    pub(super) added: bool,
    pub(super) zoned: bool,
    /// Before the data, which it points to.
    pub(super) attributes: Option<Table<B::QueueData>>,
    pub(super) base: B,
    pub(super) parent: Option<Arc<Parent>>,
    pub(super) _major: Option<Arc<BlockMajor>>,
    /// Keeps the driver's module in memory if this is leaked, since C continues to call it.
    pub(super) pin: ModulePin,
}

// SAFETY: C synchronises access to the disk, and the driver's data is `Send` and `Sync`.
unsafe impl<B: Base> Send for Disk<B> {}

// SAFETY: As above.
unsafe impl<B: Base> Sync for Disk<B> {}

impl<B: Base> Disk<B> {
    /// Removes a disk that was added.
    fn remove(&mut self) {
        let disk = self.disk.as_ptr();
        // SAFETY: By the type invariant, the disk is valid.
        let queue = unsafe { (*disk).queue };
        // SAFETY: By the type invariant, a disk has a queue.
        let queue = unsafe { NonNull::new_unchecked(queue) };
        // SAFETY: By the type invariant.
        unsafe { self.base.begin_removal(queue) };
        // Drains all I/O, and exits the hardware queues.
        //
        // SAFETY: By the type invariant, the disk was added, and it is removed only once.
        unsafe { bindings::del_gendisk(disk) };
        self.base.end_removal();
        // SAFETY: By the type invariant, and the pin is that of the driver's module.
        unsafe { DiskOperations::remove(self.disk, &self.pin) };
        // If a task has the disk open, C releases the disk when the task closes it. Until then, C
        // accesses only its operations.
        //
        // SAFETY: By the type invariant.
        unsafe { DiskOperations::put_disk(self.disk) };
    }

    /// Waits until there is no other reference to a disk that is not on the system.
    ///
    /// C has no way to wait for that, so this polls the reference count.
    fn wait_for_references(&self) {
        // SAFETY: By the type invariant.
        while unsafe { bindings::blk_disk_references(self.disk.as_ptr()) } > 1 {
            fsleep(Delta::from_millis(1));
        }
    }

    /// Frees a disk that was not added.
    fn free_unadded(&mut self) {
        let disk = self.disk.as_ptr();
        // SAFETY: By the type invariant.
        let operations = unsafe { (*disk).fops };
        // If adding the disk failed halfway, code that iterates over all disks may have a reference
        // to it.
        self.wait_for_references();
        // SAFETY: By the type invariant.
        if let Some(gate) = unsafe { DiskOperations::gate(self.disk) } {
            gate.close();
        }
        // SAFETY: By the type invariant.
        let queue = unsafe { (*disk).queue };
        self.base.with_fixed_queues(|| {
            // The hardware queues are freed at once. The tag set may be iterated over without a
            // lock, which uses those of a queue that is not frozen.
            //
            // SAFETY: By the type invariant, the disk has a queue. To freeze it runs its hardware
            // queues, whose number does not change here.
            unsafe { bindings::blk_freeze_queue_start_non_owner(queue) };
            // SAFETY: As above, and the freeze was started.
            unsafe { bindings::blk_mq_freeze_queue_wait(queue) };
            // SAFETY: By the type invariant. This is the last reference, so putting it exits the
            // hardware queues, for which their tag set is still there.
            unsafe { bindings::put_disk(disk) }
        });
        // SAFETY: By the type invariant. The disk that used the operations is freed, and it was not
        // added, so C has not called `free_disk`.
        drop(unsafe { DiskOperations::from_raw(operations) });
    }
}

impl<B: Base> Drop for Disk<B> {
    fn drop(&mut self) {
        if self.added {
            self.remove();
        } else {
            self.free_unadded();
        }
    }
}

/// A disk that is built, but not added to the system yet.
///
/// Dropping it frees all of it. It may be dropped in any context, like a [`GenDisk`].
///
/// # Examples
///
/// ```
/// use kernel::{block::{gendisk::{GenDisk, NewDisk}, mq::Operations}, prelude::*};
///
/// fn publish<T: Operations>(disk: NewDisk<T>) -> Result<GenDisk<T>> {
///     // The block layer submits requests from here on.
///     disk.add()
/// }
/// ```
#[must_use = "a disk has no effect until it is added"]
pub struct NewDisk<T: Driver<I>, I = Requests> {
    disk: LateDrop<Disk<T::Base>>,
}

impl<I: 'static, T: Driver<I>> NewDisk<T, I> {
    pub(super) fn new(disk: LateDrop<Disk<T::Base>>) -> Self {
        Self { disk }
    }

    /// Returns the driver's data for the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        self.disk.base.queue_data()
    }

    /// Adds the disk to the system.
    ///
    /// The block layer may submit I/O before this returns. Of a zoned disk, it asks for all zones
    /// first.
    ///
    /// Fails with `EEXIST` or `EBUSY` if the name or a number is taken, `ENOMEM` if out of memory,
    /// `ENODEV` if not all zones are reported or they do not match, `EINTR` if the disk is zoned
    /// and the task is being killed, or `EDEADLK` in a callback of the block layer or in another
    /// context that cannot wait for I/O. An error of [`Operations::report_zones`] is returned. If
    /// its parent is no longer in the system, there is an error, too. The disk is freed then.
    pub fn add(mut self) -> Result<GenDisk<T, I>> {
        late_drop::check_may_wait()?;
        let disk = self.disk.disk.as_ptr();
        let owner = this_module::<T::Module>().as_ptr();
        let parent = self.disk.parent.as_ref();
        let parent = parent.map_or(core::ptr::null_mut(), |parent| parent.as_raw());
        let attributes = self.disk.attributes.as_ref();
        let groups = attributes.map_or(core::ptr::null_mut(), |table| table.as_raw());
        if self.disk.zoned {
            // SAFETY: By the type invariant of `Disk`, it is allocated, and was not added before.
            // Its queue is zoned and its operations can report zones, as the builder has checked.
            to_result(unsafe { bindings::blk_revalidate_zones(disk) })?;
        }
        // SAFETY: By the type invariant of `Disk`, it is allocated, and was not added before.
        // The parent and its ancestors, and the attributes, are valid as long as the disk is on the
        // system.
        to_result(unsafe { bindings::blk_add_disk(parent, disk, groups, owner) })?;
        // INVARIANT: The disk is added now.
        self.disk.as_mut().added = true;
        Ok(GenDisk { disk: self.disk })
    }
}

/// A disk that is added to the system: C's `struct gendisk`.
///
/// Dropping it waits until all I/O has ended, removes the disk from the system, then drops the
/// driver's data for it. A task that has it open holds references to the dead disk and to the
/// driver's module.
///
/// It may be dropped in any context. In a callback of the block layer, in an interrupt, under a
/// spinlock, or in a NOIO scope, dropping it does not wait: a work item removes the disk a little
/// later. On a kernel without `CONFIG_PREEMPT_COUNT`, this is always left to the work item.
///
/// A module that leaks it, by [`mem::forget`](core::mem::forget) or in a `static`, is never freed:
/// the task that unloads it waits forever.
///
/// # Examples
///
/// ```
/// # use kernel::{block::mq::*, prelude::*};
/// # struct Driver;
/// # #[vtable]
/// # impl Operations for Driver {
/// #     type Context = Blocking;
/// #     type TagSetData = ();
/// #     type QueueData = u32;
/// #     type HwData = ();
/// #     type RequestData = ();
/// #     type Timer = NoTimer;
/// #
/// #     fn init_hw_queue(_: &u32, _: &(), _: u32) -> impl PinInit<(), Error> {
/// #         Ok(())
/// #     }
/// #
/// #     fn init_request(_: &()) -> impl PinInit<()> {}
/// #
/// #     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
/// #         rq.start().end(Ok(()));
/// #         Ok(())
/// #     }
/// # }
/// use kernel::{block::gendisk::GenDiskBuilder, sync::static_lock_class};
///
/// let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
/// let disk = GenDiskBuilder::new(tags, static_lock_class!())
///     .build(c"rust_disk_doc", Ok(7))?
///     .add()?;
/// assert_eq!(*disk.queue_data(), 7);
///
/// // The number of hardware queues can change while the disk is in use.
/// let counts = QueueCounts { poll: 0, ..disk.tag_set().queue_counts() };
/// disk.tag_set().set_queue_counts(counts)?;
///
/// // This removes it from the system.
/// drop(disk);
/// # Ok::<(), Error>(())
/// ```
pub struct GenDisk<T: Driver<I>, I = Requests> {
    disk: LateDrop<Disk<T::Base>>,
}

impl<I: 'static, T: Driver<I>> GenDisk<T, I> {
    /// Returns the driver's data for the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        self.disk.base.queue_data()
    }

    /// Changes the capacity. User space is told if neither the old one nor the new one is zero.
    ///
    /// The driver fails requests beyond the capacity that it has. Such requests can arrive for a
    /// while if the capacity has become smaller.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the capacity is larger than that of any disk; `EOPNOTSUPP` if the disk is zoned;
    /// `ENODEV` if the disk is [dead](Self::mark_dead); `EDEADLK` in a callback of the block layer,
    /// or in another context that cannot wait for I/O.
    pub fn set_capacity(&self, capacity: Sectors) -> Result {
        late_drop::check_may_wait()?;
        if capacity > MAX_CAPACITY {
            return Err(EINVAL);
        }
        if self.disk.zoned {
            return Err(EOPNOTSUPP);
        }
        let disk = self.disk.disk.as_ptr();
        // SAFETY: By the type invariant of `Disk`, it is valid.
        let is_dead = || unsafe { bindings::blk_disk_is_dead(disk) };
        if is_dead() {
            return Err(ENODEV);
        }
        // SAFETY: As above, and the caller may sleep.
        unsafe { bindings::set_capacity_and_notify(disk, capacity.0) };
        // C marks the disk as dead, then sets the capacity under the lock that was just held.
        if is_dead() {
            // SAFETY: As above.
            unsafe { bindings::set_capacity(disk, 0) };
            return Err(ENODEV);
        }
        Ok(())
    }

    /// Returns the capacity that the block layer knows.
    pub fn capacity(&self) -> Sectors {
        // SAFETY: By the type invariant of `Disk`, it is valid.
        let part0 = unsafe { (*self.disk.disk.as_ptr()).part0 };
        // SAFETY: A disk has a block device.
        Sectors(unsafe { bindings::bdev_nr_sectors(part0) })
    }

    /// Changes the limits. `change` gets those that the disk has, with what the block layer has
    /// chosen filled in.
    ///
    /// No I/O is in progress meanwhile: this waits for what the disk has accepted, also for
    /// passthrough requests, and as long as the tag set is quiesced. So the caller must not have a
    /// request or bio of the disk, nor a lock that is needed to end one. Other disks of the tag set
    /// cannot be built or removed at that time.
    ///
    /// A discard, a Write Zeroes or a flush that was just being submitted may still arrive after
    /// the new limits have taken it away, of any length. The driver rejects it. Disks on top of
    /// this one, as those of device mapper, may keep the limits that they have taken from it.
    ///
    /// What users have chosen in sysfs remains as far as the new limits allow: the length of a
    /// request, the length of a discard or Write Zeroes, and not to use the write cache. `change`
    /// gets their choice of `rotational` and `stable_writes`. The block layer may read more ahead
    /// than they have chosen.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the limits are invalid, or the block size is another one, which file systems and
    /// the page cache rely on; `EOPNOTSUPP` if the disk is zoned; `ENODEV` if the disk is
    /// [dead](Self::mark_dead); `EDEADLK` in a callback of the block layer, or in another context
    /// that cannot wait for I/O; `change` itself runs in such a context. After an error, the limits
    /// are those of before.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::{gendisk::GenDisk, mq::Operations}, prelude::*};
    ///
    /// fn cache_is_gone<T: Operations>(disk: &GenDisk<T>) -> Result {
    ///     disk.update_limits(|limits| limits.write_cache = false)
    /// }
    /// ```
    pub fn update_limits(&self, change: impl FnOnce(&mut QueueLimits)) -> Result {
        late_drop::check_may_wait()?;
        let disk = self.disk.disk.as_ptr();
        // SAFETY: By the type invariant of `Disk`, it is valid.
        if unsafe { bindings::blk_disk_is_dead(disk) } {
            return Err(ENODEV);
        }
        // SAFETY: As above.
        let queue = unsafe { (*disk).queue };
        let mut result = Ok(());
        // To reclaim memory may need I/O of the disk, or a lock that is held here.
        memalloc_noio(|| {
            // To freeze the disk runs its hardware queues, so their number must not change.
            self.disk.base.with_fixed_queues(|| {
                // SAFETY: By the type invariant of `Disk`, it is in the system, so it has a queue.
                // The number of its hardware queues is fixed here. The caller may wait for I/O, as
                // checked.
                result = unsafe { update_limits(queue, change) };
            });
        });
        result
    }

    /// Marks the disk as dead: its device is gone. New I/O fails, the capacity is zero, and file
    /// systems on the disk are shut down, without an attempt to write what they have.
    ///
    /// Requests that have arrived before are not affected: the driver has to end them. The disk
    /// remains in the system until it is dropped.
    ///
    /// File systems may wait for requests that have arrived. So the caller must not hold a lock
    /// that is needed to end one.
    ///
    /// # Errors
    ///
    /// `EDEADLK` in a callback of the block layer, or in another context that cannot wait for I/O.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::{gendisk::GenDisk, mq::Operations}, prelude::*};
    ///
    /// fn device_is_gone<T: Operations>(disk: GenDisk<T>) -> Result {
    ///     disk.mark_dead()?;
    ///     // The driver ends the requests that the device had, and fails those that follow.
    ///     drop(disk);
    ///     Ok(())
    /// }
    /// ```
    pub fn mark_dead(&self) -> Result {
        late_drop::check_may_wait()?;
        // SAFETY: By the type invariant of `Disk`, it is valid, and it was added.
        unsafe { bindings::blk_mark_disk_dead(self.disk.disk.as_ptr()) };
        Ok(())
    }

    /// Begins to freeze the disk: it accepts no more I/O. Waits for a change of the number of
    /// hardware queues, but for no I/O otherwise.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the disk is [dead](Self::mark_dead); `ENOMEM` if out of memory; `EDEADLK` in a
    /// callback of the block layer, or in another context that cannot wait for I/O.
    pub fn freeze_start(&self) -> Result<Frozen> {
        late_drop::check_may_wait()?;
        // SAFETY: By the type invariant of `Disk`, it is valid.
        let queue = unsafe { (*self.disk.disk.as_ptr()).queue };
        // SAFETY: By the type invariant of `Disk`, it was added, so it has a queue.
        let queue = unsafe { NonNull::new_unchecked(queue) };
        let mut frozen = Err(ENODEV);
        // To reclaim memory may need I/O of another disk, which the caller has frozen.
        memalloc_noio(|| {
            self.disk.base.with_fixed_queues(|| {
                // SAFETY: The queue is that of the disk. The number of its hardware queues is fixed
                // here. The caller may sleep, as checked.
                frozen = unsafe { Frozen::start(queue) };
            });
        });
        frozen
    }

    /// Returns the block device of the whole disk.
    #[cfg(CONFIG_RUST_KUNIT_TESTS)]
    pub(crate) fn part0(&self) -> *mut bindings::block_device {
        // SAFETY: By the type invariant of `Disk`, it is valid.
        unsafe { (*self.disk.disk.as_ptr()).part0 }
    }
}

impl<T: Operations> GenDisk<T, Requests> {
    /// Returns the tag set that holds the requests of the disk.
    pub fn tag_set(&self) -> &Arc<TagSet<T>> {
        self.disk.base.tags()
    }

    /// Returns a handle by which others can access the disk until it is removed; [`None`] unless
    /// the driver has [`Operations::ioctl`].
    pub fn handle(&self) -> Option<DiskHandle<T>> {
        // SAFETY: By the type invariant of `Disk`, it owns its operations.
        let gate = unsafe { DiskOperations::gate(self.disk.disk) }?;
        // SAFETY: It is the gate of a disk of `T`.
        Some(unsafe { DiskHandle::new(gate) })
    }
}

/// Does what [`GenDisk::update_limits`] does for a queue.
///
/// # Safety
///
/// The queue is that of a disk in the system. The number of its hardware queues does not change.
/// The caller may wait for I/O.
unsafe fn update_limits(
    queue: *mut bindings::request_queue,
    change: impl FnOnce(&mut QueueLimits),
) -> Result {
    // SAFETY: By the safety requirement. The lock that this takes is released below.
    let raw = unsafe { bindings::queue_limits_start_update(queue) };
    let changed = QueueLimits::from_raw(&raw).and_then(|before| {
        let mut limits = before;
        change(&mut limits);
        limits.validate()?;
        let block_size = limits.logical_block_size.max(SECTOR_SIZE);
        if limits.zoned || block_size != before.logical_block_size {
            return Err(EINVAL);
        }
        Ok(limits.as_raw_instead_of(&raw))
    });
    let mut raw = match changed {
        Ok(raw) => raw,
        Err(error) => {
            // SAFETY: The lock is held.
            unsafe { bindings::queue_limits_cancel_update(queue) };
            return Err(error);
        }
    };
    // This freezes the disk, and releases the lock.
    //
    // SAFETY: By the safety requirement, and the lock is held.
    to_result(unsafe { bindings::queue_limits_commit_update_frozen(queue, &mut raw) })
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod limits_tests;
// The tests expect that dropping a disk removes it at once.
#[cfg(all(CONFIG_RUST_KUNIT_TESTS, CONFIG_PREEMPT_COUNT))]
mod tests;
// The tests expect that dropping a disk removes it at once.
#[cfg(all(CONFIG_RUST_KUNIT_TESTS, CONFIG_PREEMPT_COUNT))]
mod zone_tests;
