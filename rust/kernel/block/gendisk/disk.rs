// SPDX-License-Identifier: GPL-2.0

//! A disk, which becomes another type when it is added to the system.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::operations::DiskOperations;
use crate::{
    bindings,
    block::{
        major::BlockMajor,
        mq::{
            DiskData,
            Operations,
            RequestQueue,
            TagSet, //
        },
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

/// A disk, added or not.
///
/// The fields are dropped in this order, after the disk itself is gone.
///
/// # Invariants
///
/// It owns a reference to `disk`, which was allocated on `tag_set` with `data`, and owns what its
/// `fops` points to. `added` says whether `device_add_disk` has succeeded.
pub(super) struct Disk<T: Operations> {
    pub(super) disk: NonNull<bindings::gendisk>,
    pub(super) added: bool,
    pub(super) data: Pin<KBox<DiskData<T>>>,
    pub(super) tag_set: Arc<TagSet<T>>,
    pub(super) _major: Option<Arc<BlockMajor>>,
    /// C calls the driver's module if this is leaked.
    pub(super) pin: ModulePin,
}

// SAFETY: C's disk is synchronised, and the driver's data is `Send` and `Sync`.
unsafe impl<T: Operations> Send for Disk<T> {}

// SAFETY: As above.
unsafe impl<T: Operations> Sync for Disk<T> {}

impl<T: Operations> Disk<T> {
    /// Removes a disk that was added.
    fn remove(&mut self) {
        let disk = self.disk.as_ptr();
        // SAFETY: By the type invariant, the disk is there.
        let queue = unsafe { (*disk).queue };
        // SAFETY: By the type invariant, a disk has a queue.
        let queue = unsafe { NonNull::new_unchecked(queue) };
        // Requests may wait in a queue that the driver has stopped.
        //
        // SAFETY: By the type invariant, the queue was made with `data`, whose timer is cancelled
        // below.
        unsafe { RequestQueue::<T>::from_raw(queue) }.start_for_good();
        // Ends all I/O, and exits the hardware queues.
        //
        // SAFETY: By the type invariant, the disk was added, and is removed once.
        unsafe { bindings::del_gendisk(disk) };
        // What called the driver may not have returned yet.
        self.tag_set.reap();
        // It is not started again.
        self.data.cancel_timer();
        // SAFETY: By the type invariant, and the pin is that of the driver's module.
        unsafe { DiskOperations::remove(self.disk, &self.pin) };
        // If a task has the disk open, it is released when that closes it. Until then, C looks at
        // nothing but its operations.
        //
        // SAFETY: By the type invariant.
        unsafe { DiskOperations::put_disk(self.disk) };
    }

    /// Waits until there is no other reference to a disk that is not on the system.
    ///
    /// C has nothing to wait for, so this looks again and again, which
    /// `patches/upstream/block-put-disk-sync.patch` makes superfluous.
    fn wait_for_others(&self) {
        // SAFETY: By the type invariant.
        while unsafe { bindings::blk_disk_references(self.disk.as_ptr()) } > 1 {
            fsleep(Delta::from_millis(1));
        }
    }

    /// Gives up a disk that was not added.
    fn abandon(&mut self) {
        let disk = self.disk.as_ptr();
        // SAFETY: By the type invariant.
        let operations = unsafe { (*disk).fops };
        // If adding it failed halfway, what lists all disks may have come across it.
        self.wait_for_others();
        self.tag_set.with_fixed_queues(|_| {
            // SAFETY: By the type invariant. This is the last reference, so it exits the hardware
            // queues, for which the tag set is still there.
            unsafe { bindings::put_disk(disk) }
        });
        // SAFETY: By the type invariant; the disk that had them is gone, and it was not added, so C
        // has not asked to free them.
        drop(unsafe { DiskOperations::from_raw(operations) });
    }
}

impl<T: Operations> Drop for Disk<T> {
    fn drop(&mut self) {
        if self.added {
            self.remove();
        } else {
            self.abandon();
        }
    }
}

/// A disk that is built, and not yet added to the system.
///
/// Dropping it leaves nothing behind. It may be dropped anywhere, like a [`GenDisk`].
///
/// # Examples
///
/// ```
/// use kernel::{block::{gendisk::{GenDisk, NewDisk}, mq::Operations}, prelude::*};
///
/// fn publish<T: Operations>(disk: NewDisk<T>) -> Result<GenDisk<T>> {
///     // From here on, requests come.
///     disk.add()
/// }
/// ```
#[must_use = "a disk is of no use before it is added"]
pub struct NewDisk<T: Operations> {
    disk: LateDrop<Disk<T>>,
}

impl<T: Operations> NewDisk<T> {
    pub(super) fn new(disk: LateDrop<Disk<T>>) -> Self {
        Self { disk }
    }

    /// What the driver keeps for the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        self.disk.data.data()
    }

    /// Adds the disk to the system.
    ///
    /// I/O may be served before this returns.
    ///
    /// Fails with `EEXIST` or `EBUSY` if the name or a number is taken, `ENOMEM` if memory is
    /// short, `EDEADLK` in a callback of the block layer or elsewhere where the caller cannot wait
    /// for I/O. Then the disk is gone.
    pub fn add(mut self) -> Result<GenDisk<T>> {
        late_drop::can_wait()?;
        let disk = self.disk.disk.as_ptr();
        let owner = this_module::<T::OwnerModule>().as_ptr();
        // SAFETY: By the type invariant of `Disk`, it is allocated, and was not added before.
        to_result(unsafe { bindings::blk_add_disk(disk, owner) })?;
        // INVARIANT: It is added now.
        self.disk.as_mut().added = true;
        Ok(GenDisk { disk: self.disk })
    }
}

/// A disk on the system: C's `struct gendisk`.
///
/// Dropping it waits until all I/O has ended, takes it off the system, then drops the driver's data
/// for it. A task that has it open keeps a dead disk, and the driver's module.
///
/// It may be dropped anywhere. In a callback of the block layer, an interrupt, under a spinlock, or
/// in a NOIO scope, dropping it does not wait: a worker does, and the disk goes a little later. A
/// kernel without `CONFIG_PREEMPT_COUNT` leaves it to the worker always.
///
/// A module that leaks it, by [`mem::forget`](core::mem::forget) or in a `static`, is never gone:
/// the task that unloads it waits for ever.
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
/// // This takes it off the system.
/// drop(disk);
/// # Ok::<(), Error>(())
/// ```
pub struct GenDisk<T: Operations> {
    disk: LateDrop<Disk<T>>,
}

impl<T: Operations> GenDisk<T> {
    /// What the driver keeps for the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        self.disk.data.data()
    }

    /// The tag set that has the requests of the disk.
    pub fn tag_set(&self) -> &Arc<TagSet<T>> {
        &self.disk.tag_set
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
