// SPDX-License-Identifier: GPL-2.0

//! A builder of disks, which undoes its steps on error.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::{
    disk::{
        Disk,
        MAX_CAPACITY, //
    },
    interface::{
        Base,
        Bios,
        BuiltOn,
        Driver,
        Requests, //
    },
    operations::DiskOperations,
    NewDisk, //
};
use crate::{
    bindings,
    block::{
        bio_based,
        limits::QueueLimits,
        major::BlockMajor,
        mq::{
            self,
            TagSet, //
        },
        zone::ZoneReports,
        Sectors, //
    },
    device_class::{
        Attribute,
        Parent,
        Table, //
    },
    dma::bound::DmaDevice,
    late_drop::{
        self,
        LateDrop, //
    },
    module::this_module,
    module_pin::ModulePin,
    prelude::*,
    sync::{
        Arc,
        LockClassKey, //
    },
};
use core::ptr::NonNull;

/// The maximum number of minor numbers of a disk.
const MAX_MINORS: u32 = 256;

/// The device numbers of a disk.
struct DeviceNumbers {
    major: Arc<BlockMajor>,
    first_minor: u32,
    minors: u32,
}

/// A builder for [`NewDisk`].
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
/// use kernel::{
///     block::{gendisk::GenDiskBuilder, limits::QueueLimits, major::BlockMajor, Sectors},
///     sync::static_lock_class,
/// };
///
/// let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
/// let major = BlockMajor::register(c"rust_doc")?;
/// let limits = QueueLimits { logical_block_size: 4096, ..QueueLimits::default() };
///
/// let disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
///     .limits(limits)
///     .capacity(Sectors::from_mebibytes(1))
///     .numbers(major, 0, 1)
///     .build(c"rust_doc0", Ok(7))?;
/// assert_eq!(*disk.queue_data(), 7);
///
/// // A block size that is not a power of two is invalid, and so are the following limits.
/// for limits in [
///     QueueLimits { logical_block_size: 1000, ..limits },
///     QueueLimits { max_hw_sectors: Sectors(1), ..limits },
///     QueueLimits { max_segment_size: 1, ..limits },
///     QueueLimits { dma_alignment: 1 << 20, ..limits },
///     QueueLimits { max_open_zones: 1, ..limits },
///     QueueLimits { max_active_zones: 1, ..limits },
/// ] {
///     let nothing = GenDiskBuilder::new(tags.clone(), static_lock_class!())
///         .limits(limits)
///         .build(c"rust_doc1", Ok(7));
///     assert_eq!(nothing.err(), Some(EINVAL));
/// }
/// // An empty name is invalid.
/// let nothing = GenDiskBuilder::new(tags, static_lock_class!()).build(c"", Ok(7));
/// assert_eq!(nothing.err(), Some(EINVAL));
/// # Ok::<(), Error>(())
/// ```
pub struct GenDiskBuilder<T: Driver<I>, I = Requests> {
    tag_set: T::TagSet,
    class: Pin<&'static LockClassKey>,
    limits: QueueLimits,
    capacity: Sectors,
    numbers: Option<DeviceNumbers>,
    parent: Option<Arc<Parent>>,
    attributes: &'static [Attribute<T::QueueData>],
}

impl<T: mq::Operations> GenDiskBuilder<T, Requests> {
    /// Creates a builder for a disk with a capacity of zero and default limits.
    ///
    /// The module of `T` stays loaded while the disk is open. `class` is `static_lock_class!()`;
    /// all disks of a driver share it.
    pub fn new(tag_set: Arc<TagSet<T>>, class: Pin<&'static LockClassKey>) -> Self {
        let dma_device = None;
        Self::on(
            BuiltOn {
                tag_set,
                dma_device,
            },
            class,
        )
    }

    /// Sets the device that the memory of requests can be mapped for, see
    /// [`StartedRequest::map`](mq::StartedRequest::map).
    ///
    /// The [limits](Self::limits) are to be such that each request can be mapped: at most
    /// [`DmaDevice::max_mapping_size`] bytes.
    pub fn dma_device(mut self, dma_device: Arc<DmaDevice>) -> Self {
        self.tag_set.dma_device = Some(dma_device);
        self
    }
}

impl<T: bio_based::Operations> GenDiskBuilder<T, Bios> {
    /// Creates a builder for a disk that gets bios instead of requests, with a capacity of zero and
    /// default limits.
    ///
    /// As for [`Self::new`]. A disk with bios cannot be zoned.
    pub fn bio_based(class: Pin<&'static LockClassKey>) -> Self {
        Self::on((), class)
    }
}

impl<I: 'static, T: Driver<I>> GenDiskBuilder<T, I> {
    fn on(tag_set: T::TagSet, class: Pin<&'static LockClassKey>) -> Self {
        Self {
            tag_set,
            class,
            limits: QueueLimits::default(),
            capacity: Sectors::ZERO,
            numbers: None,
            parent: None,
            attributes: &[],
        }
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: QueueLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the capacity.
    pub fn capacity(mut self, capacity: Sectors) -> Self {
        self.capacity = capacity;
        self
    }

    /// Uses `minors` device numbers of `major` from `first_minor` on. The first is that of the
    /// disk, the others are those of partitions. There are at most 256 of them, and all are below
    /// `1 << 20`.
    ///
    /// If this is not called, the block layer chooses the numbers.
    pub fn numbers(mut self, major: Arc<BlockMajor>, first_minor: u32, minors: u32) -> Self {
        self.numbers = Some(DeviceNumbers {
            major,
            first_minor,
            minors,
        });
        self
    }

    /// Makes the disk a child of a device: `/sys/block/NAME/device` links to it.
    ///
    /// A driver drops the disks of its device when it is unbound from that. If it does not, a disk
    /// stays below the device in sysfs. If the device is then removed from the system, so are the
    /// files of the disk in sysfs, and the kernel warns when the disk is dropped that it does not
    /// find them. The memory of the device and its ancestors is not freed before that.
    pub fn parent(mut self, parent: Arc<Parent>) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Gives the disk attribute files in sysfs, which are below `/sys/block/NAME`.
    pub fn attributes(mut self, attributes: &'static [Attribute<T::QueueData>]) -> Self {
        self.attributes = attributes;
        self
    }

    fn validate(&self, name: &CStr) -> Result {
        self.limits.validate()?;
        let minors_fit = self.numbers.as_ref().is_none_or(|numbers| {
            let end = numbers.first_minor.saturating_add(numbers.minors);
            (1..=MAX_MINORS).contains(&numbers.minors) && end <= 1 << bindings::MINORBITS
        });
        // C does not handle a zoned disk that reports no zones.
        let zones = !self.limits.zoned || T::REPORT_ZONES.is_some();
        if minors_fit && self.capacity <= MAX_CAPACITY && zones && !name.is_empty() {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Prepares for the zone reports of the disk, if it is zoned.
    fn zone_reports(&mut self) -> Result<Option<Pin<KBox<ZoneReports>>>> {
        let Some(report_zones) = T::REPORT_ZONES.filter(|_| self.limits.zoned) else {
            return Ok(None);
        };
        self.limits = self.limits.validate_zones(self.capacity)?;
        let zone_size = self.limits.chunk_sectors;
        let reports = ZoneReports::new(zone_size, self.capacity, report_zones);
        Ok(Some(KBox::pin_init(reports, GFP_KERNEL)?))
    }

    /// Builds the disk with `queue_data` as the driver's data. The disk is not visible in the
    /// system yet.
    ///
    /// `name` is truncated to 31 bytes. Another disk on the tag set may be frozen meanwhile.
    ///
    /// Fails with `EINVAL` if the name is empty, or the limits, the capacity or the numbers are
    /// invalid, `ENOMEM` if out of memory or a hardware queue could not be initialised, `EAGAIN`
    /// while the parameters of the module are being parsed, `ENOTSUPP` in a module for a kernel
    /// without sysfs or Tasks RCU, `EDEADLK` in a callback of the block layer or in another context
    /// that cannot wait for I/O, `EBUSY` if the tag set has reserved tags and a queue or disk
    /// already, or with the error of the initialiser.
    pub fn build(
        mut self,
        name: &CStr,
        queue_data: impl PinInit<T::QueueData, Error>,
    ) -> Result<NewDisk<T, I>> {
        self.validate(name)?;
        late_drop::check_may_wait()?;
        let owner = this_module::<T::Module>();
        let (pin, disk_pin) = (ModulePin::new(owner)?, ModulePin::new(owner)?);
        let zone_reports = self.zone_reports()?;
        let (limits, class, numbers) = (self.limits, self.class, self.numbers);
        let base = T::base(self.tag_set, queue_data)?;
        let attributes = if self.attributes.is_empty() {
            None
        } else {
            let data: *const T::QueueData = base.queue_data();
            // SAFETY: `Disk` removes the disk before it drops `base`, in which the data is pinned.
            Some(unsafe { Table::new(self.attributes, data) }?)
        };
        let operations =
            DiskOperations::new(owner, base.tag_set(), T::SUBMIT_BIO, zone_reports, T::IOCTL)?;
        // SAFETY: `Disk` drops it after the disk.
        let disk = unsafe { base.alloc(&limits, class) }?;
        // SAFETY: The disk was just allocated, is not added, and is not known elsewhere yet.
        unsafe { fill(disk, name, self.capacity, numbers.as_ref(), operations) };
        // INVARIANT: The disk was just allocated and initialised, and is not added.
        let disk = Disk {
            disk,
            added: false,
            zoned: limits.zoned,
            base,
            attributes,
            parent: self.parent,
            _major: numbers.map(|numbers| numbers.major),
            pin: disk_pin,
        };
        Ok(NewDisk::new(LateDrop::new(pin, Ok(disk), GFP_KERNEL)?))
    }
}

/// Fills in what the driver chooses.
///
/// # Safety
///
/// The caller owns `disk`, which is allocated and not added.
unsafe fn fill(
    disk: NonNull<bindings::gendisk>,
    name: &CStr,
    capacity: Sectors,
    numbers: Option<&DeviceNumbers>,
    operations: DiskOperations,
) {
    let disk = disk.as_ptr();
    // SAFETY: By the safety requirement.
    let disk_name = unsafe { &mut (*disk).disk_name };
    // The name was all zero, so the bytes that are not overwritten terminate it.
    let max_len = disk_name.len() - 1;
    for (to, from) in disk_name[..max_len].iter_mut().zip(name.to_bytes()) {
        *to = *from as c_char;
    }
    // SAFETY: By the safety requirement.
    let queue = unsafe { (*disk).queue };
    // SAFETY: By the safety requirement, it has a queue.
    let queue = unsafe { NonNull::new_unchecked(queue) };
    // SAFETY: `Disk` closes the gate before it drops anything.
    unsafe { operations.open_gate(queue) };
    // SAFETY: By the safety requirement. The disk owns its operations now; dropping the disk
    // accounts for them.
    unsafe { (*disk).fops = operations.into_raw() };
    // SAFETY: By the safety requirement.
    unsafe { bindings::set_capacity(disk, capacity.0) };
    if let Some(numbers) = numbers {
        // `validate` has checked that the numbers fit.
        //
        // SAFETY: By the safety requirement.
        unsafe { (*disk).major = numbers.major.number() as c_int };
        // SAFETY: By the safety requirement.
        unsafe { (*disk).first_minor = numbers.first_minor as c_int };
        // SAFETY: By the safety requirement.
        unsafe { (*disk).minors = numbers.minors as c_int };
    }
}
