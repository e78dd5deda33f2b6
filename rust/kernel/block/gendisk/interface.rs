// SPDX-License-Identifier: GPL-2.0

//! The interface by which a disk gets its I/O: [`Requests`] or [`Bios`].
//!
//! A disk with requests has a tag set, and callbacks that need its hardware queues. A disk with
//! bios has neither. Everything else is the same for both, and is in the other files.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::operations::{
    AnyTagSet,
    Ioctl,
    SubmitBio, //
};
use crate::{
    bindings,
    block::{
        bio_based,
        limits::QueueLimits,
        mq::{
            self,
            DiskAccess,
            DiskData,
            IoctlCaller,
            RequestQueue,
            TagSet, //
        },
        zone::{
            ReportCallback,
            ZoneReporter, //
        },
    },
    dma::bound::DmaDevice,
    error::from_err_ptr,
    late_drop,
    prelude::*,
    sync::{
        Arc,
        LockClassKey, //
    },
    ModuleMetadata, //
};
use core::ptr::NonNull;

/// The interface of a disk whose I/O arrives as requests, from hardware queues: blk-mq.
pub enum Requests {}

/// The interface of a disk whose I/O arrives as bios, in the task that submits them.
pub enum Bios {}

/// A driver of disks with the interface `I`, which is [`Requests`] or [`Bios`].
///
/// It is implemented for each type that implements [`mq::Operations`] or
/// [`bio_based::Operations`].
///
/// # Examples
///
/// ```
/// use kernel::block::gendisk::{Driver, GenDisk};
///
/// /// Returns the driver's data of a disk of either interface.
/// fn data_of<I: 'static, T: Driver<I>>(disk: &GenDisk<T, I>) -> &T::QueueData {
///     disk.queue_data()
/// }
/// ```
pub trait Driver<I>: private::Sealed<I> + Sized + 'static {
    /// Driver data of a disk.
    type QueueData: Send + Sync + 'static;
    /// The module of the driver.
    #[doc(hidden)]
    type Module: ModuleMetadata;
    /// What the disk is built on, besides its data.
    #[doc(hidden)]
    type TagSet: Send + Sync + 'static;
    /// All that the disk is built on.
    #[doc(hidden)]
    type Base: Base<QueueData = Self::QueueData>;
    /// The function that C passes bios to.
    #[doc(hidden)]
    const SUBMIT_BIO: Option<SubmitBio>;
    /// The function that reports zones.
    #[doc(hidden)]
    const REPORT_ZONES: Option<ReportCallback>;
    /// The function that handles ioctls.
    #[doc(hidden)]
    const IOCTL: Option<Ioctl>;

    /// Initialises the data of a disk.
    #[doc(hidden)]
    fn base(
        tag_set: Self::TagSet,
        data: impl PinInit<Self::QueueData, Error>,
    ) -> Result<Self::Base>;
}

mod private {
    pub trait Sealed<I> {}
}

/// What a disk is built on: the driver's data, and a tag set if it has one.
///
/// # Safety
///
/// A disk that `alloc` returns has a queue whose callbacks need nothing but `self`.
// Public as the bound of an associated type of `Driver`, but not exported.
#[allow(unreachable_pub)]
pub unsafe trait Base: Send + Sync + Unpin + 'static {
    /// The driver's data.
    type QueueData: Send + Sync + 'static;

    /// Returns the driver's data.
    fn queue_data(&self) -> &Self::QueueData;

    /// Returns a reference to the tag set, if there is one.
    fn tag_set(&self) -> Option<AnyTagSet>;

    /// Allocates a disk with the limits.
    ///
    /// # Safety
    ///
    /// `self` is dropped after the disk.
    unsafe fn alloc(
        &self,
        limits: &QueueLimits,
        class: Pin<&'static LockClassKey>,
    ) -> Result<NonNull<bindings::gendisk>>;

    /// Called before a disk is removed. Its requests must end then, so queues that are stopped are
    /// started, and are not stopped again.
    ///
    /// # Safety
    ///
    /// `queue` is that of a disk that [`Base::alloc`] of `self` has returned.
    unsafe fn begin_removal(&self, queue: NonNull<bindings::request_queue>);

    /// Called after a disk was removed, when all of its I/O has ended.
    fn end_removal(&self);

    /// Calls `f`, which may exit hardware queues.
    fn with_fixed_queues(&self, f: impl FnOnce());
}

impl<T: mq::Operations> private::Sealed<Requests> for T {}

impl<T: mq::Operations> Driver<Requests> for T {
    type QueueData = T::QueueData;
    type Module = T::OwnerModule;
    type TagSet = BuiltOn<T>;
    type Base = RequestBase<T>;
    const SUBMIT_BIO: Option<SubmitBio> = None;
    const REPORT_ZONES: Option<ReportCallback> = if T::HAS_REPORT_ZONES {
        Some(report_zones::<T>)
    } else {
        None
    };
    const IOCTL: Option<Ioctl> = if T::HAS_IOCTL { Some(ioctl::<T>) } else { None };

    fn base(on: BuiltOn<T>, data: impl PinInit<T::QueueData, Error>) -> Result<RequestBase<T>> {
        const_assert!(size_of::<DiskData<T>>() <= late_drop::MAX_SIZE);
        let tag_set = on.tag_set;
        let data = KBox::pin_init(tag_set.disk_data(on.dma_device, data), GFP_KERNEL)?;
        Ok(RequestBase { data, tag_set })
    }
}

/// What a disk with requests is built on, besides its data.
pub struct BuiltOn<T: mq::Operations> {
    pub(super) tag_set: Arc<TagSet<T>>,
    pub(super) dma_device: Option<Arc<DmaDevice>>,
}

/// Reports the zones of a disk of `T`.
///
/// # Safety
///
/// `queue` is that of a disk of `T` whose data is not dropped meanwhile.
unsafe fn report_zones<T: mq::Operations>(
    queue: *const bindings::request_queue,
    reporter: &mut ZoneReporter<'_>,
) -> Result {
    // SAFETY: By the safety requirement.
    T::report_zones(unsafe { DiskData::<T>::of_queue(queue) }.data(), reporter)
}

/// Passes an ioctl to `T`.
///
/// # Safety
///
/// `queue` is that of a disk of `T`, of which nothing is dropped meanwhile.
unsafe fn ioctl<T: mq::Operations>(
    queue: NonNull<bindings::request_queue>,
    caller: IoctlCaller,
    cmd: u32,
    arg: usize,
) -> Result<u32> {
    // SAFETY: By the safety requirement.
    T::ioctl(&unsafe { DiskAccess::from_raw(queue) }, caller, cmd, arg)
}

/// What a disk with requests is built on. The data is dropped first.
pub struct RequestBase<T: mq::Operations> {
    data: Pin<KBox<DiskData<T>>>,
    tag_set: Arc<TagSet<T>>,
}

impl<T: mq::Operations> RequestBase<T> {
    /// Returns the tag set.
    pub(super) fn tags(&self) -> &Arc<TagSet<T>> {
        &self.tag_set
    }
}

// SAFETY: The queue is on `tag_set`, with `data`.
unsafe impl<T: mq::Operations> Base for RequestBase<T> {
    type QueueData = T::QueueData;

    fn queue_data(&self) -> &T::QueueData {
        self.data.data()
    }

    fn tag_set(&self) -> Option<AnyTagSet> {
        Some(AnyTagSet::new(self.tag_set.clone()))
    }

    unsafe fn alloc(
        &self,
        limits: &QueueLimits,
        class: Pin<&'static LockClassKey>,
    ) -> Result<NonNull<bindings::gendisk>> {
        let mut limits = limits.as_raw();
        let disk = self.tag_set.with_fixed_queues(|set| {
            self.tag_set.check_reserved_tags()?;
            // SAFETY: The tag set is valid, and so are the limits. By the safety requirement, the
            // tag set and the data outlive the disk. The lock class is static.
            from_err_ptr(unsafe {
                bindings::__blk_mq_alloc_disk(
                    set,
                    &mut limits,
                    core::ptr::from_ref(&*self.data).cast_mut().cast(),
                    class.as_ptr(),
                )
            })
        })?;
        NonNull::new(disk).ok_or(ENOMEM)
    }

    unsafe fn begin_removal(&self, queue: NonNull<bindings::request_queue>) {
        // Requests may be waiting in a hardware queue that the driver has stopped.
        //
        // SAFETY: By the safety requirement, the queue was created with `data`, whose timer is
        // cancelled by `end_removal`.
        unsafe { RequestQueue::<T>::from_raw(queue) }.start_and_disable_stop();
    }

    fn end_removal(&self) {
        // Callbacks of the driver may still be running.
        self.tag_set.reap();
        // The timer is not started again.
        self.data.cancel_timer();
    }

    fn with_fixed_queues(&self, f: impl FnOnce()) {
        self.tag_set.with_fixed_queues(|_| f());
    }
}

impl<T: bio_based::Operations> private::Sealed<Bios> for T {}

impl<T: bio_based::Operations> Driver<Bios> for T {
    type QueueData = T::QueueData;
    type Module = T::OwnerModule;
    type TagSet = ();
    type Base = BioBase<T>;
    const SUBMIT_BIO: Option<SubmitBio> = Some(bio_based::submit_bio::<T>);
    const REPORT_ZONES: Option<ReportCallback> = None;
    const IOCTL: Option<Ioctl> = None;

    fn base((): (), data: impl PinInit<T::QueueData, Error>) -> Result<BioBase<T>> {
        const_assert!(size_of::<bio_based::DiskData<T>>() <= late_drop::MAX_SIZE);
        let data = KBox::pin_init(bio_based::disk_data(data)?, GFP_KERNEL)?;
        Ok(BioBase { data })
    }
}

/// What a disk with bios is built on.
pub struct BioBase<T: bio_based::Operations> {
    data: Pin<KBox<bio_based::DiskData<T>>>,
}

// SAFETY: The queue has `data` only.
unsafe impl<T: bio_based::Operations> Base for BioBase<T> {
    type QueueData = T::QueueData;

    fn queue_data(&self) -> &T::QueueData {
        self.data.data()
    }

    fn tag_set(&self) -> Option<AnyTagSet> {
        None
    }

    unsafe fn alloc(
        &self,
        limits: &QueueLimits,
        class: Pin<&'static LockClassKey>,
    ) -> Result<NonNull<bindings::gendisk>> {
        let mut limits = limits.as_raw_for_bios();
        // SAFETY: The limits are valid, and the lock class is static.
        let disk = from_err_ptr(unsafe {
            bindings::__blk_alloc_disk(&mut limits, bindings::NUMA_NO_NODE, class.as_ptr())
        })?;
        let disk = NonNull::new(disk).ok_or(ENOMEM)?;
        // SAFETY: The disk was just allocated.
        let queue = unsafe { (*disk.as_ptr()).queue };
        // SAFETY: As above, so its queue is valid, and no bio was submitted yet. By the safety
        // requirement, the data outlives the disk.
        unsafe { (*queue).queuedata = core::ptr::from_ref(&*self.data).cast_mut().cast() };
        Ok(disk)
    }

    unsafe fn begin_removal(&self, _queue: NonNull<bindings::request_queue>) {}

    // `submit_bio` holds a reference to `q_usage_counter`, so no callback is running.
    fn end_removal(&self) {}

    fn with_fixed_queues(&self, f: impl FnOnce()) {
        f();
    }
}
