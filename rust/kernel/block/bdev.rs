// SPDX-License-Identifier: GPL-2.0

//! Block devices that a driver has opened, to submit I/O to them.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    block::{
        limits::QueueLimits,
        Sectors, //
    },
    error::{
        from_err_ptr,
        to_result, //
    },
    late_drop::{
        check_may_wait,
        LateDrop, //
    },
    module_pin::ModulePin,
    prelude::*,
    sync::Arc, //
};
use core::ptr::{
    self,
    NonNull, //
};

/// What a block device is opened for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// To read.
    ReadOnly,
    /// To read and to write.
    ReadWrite,
}

impl Access {
    fn as_raw(self) -> bindings::blk_mode_t {
        // `rust/helpers/blk.c` asserts that these are C's `BLK_OPEN_READ` and `BLK_OPEN_WRITE`.
        match self {
            Self::ReadOnly => 1,
            Self::ReadWrite => 3,
        }
    }
}

/// A block device that is open: a disk or a partition.
///
/// It is what C's `bdev_file_open_by_path` returns. Meanwhile the device cannot be mounted, or
/// opened exclusively once more. It can be opened as that of a mounted file system can. Its
/// driver's module stays loaded. If the disk is removed nevertheless, I/O to it fails.
///
/// It may be dropped in any context. The device is closed a little later, when the clones that were
/// submitted to it have ended. A leaked one is never closed.
///
/// # Examples
///
/// ```
/// use kernel::block::{bdev::{Access, BdevFile}, Sectors};
///
/// /// Opens a device that is large enough.
/// fn open(path: &CStr, capacity: Sectors) -> Result<BdevFile> {
///     let lower = BdevFile::open_by_path(path, Access::ReadWrite)?;
///     if lower.capacity() < capacity {
///         return Err(ENOSPC);
///     }
///     Ok(lower)
/// }
///
/// assert_eq!(open(c"/nothing", Sectors::ZERO).err(), Some(ENOENT));
/// ```
pub struct BdevFile {
    inner: Arc<LateDrop<OpenFile>>,
}

/// A reference to a block device, which stays open as long.
pub(super) type BdevRef = Arc<LateDrop<OpenFile>>;

/// The inner part of a [`BdevFile`]. Dropping it sleeps.
///
/// # Invariants
///
/// `file` is an open block device, to which it owns a reference. `bdev` is that block device. It is
/// claimed with the address of `holder`.
pub(super) struct OpenFile {
    file: NonNull<bindings::file>,
    bdev: NonNull<bindings::block_device>,
    access: Access,
    /// Its address is different from that of any other holder.
    _holder: KBox<u8>,
}

// SAFETY: C's file and block device are not bound to a thread.
unsafe impl Send for OpenFile {}

// SAFETY: C synchronises all that is done with a shared reference.
unsafe impl Sync for OpenFile {}

impl BdevFile {
    /// Opens the block device whose special file is at `path`, in the file system of this task.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an empty path, `ENOENT` and the like for others, `ENOTBLK` for that of
    /// something else. Otherwise as for [`Self::open_by_dev`].
    pub fn open_by_path(path: &CStr, access: Access) -> Result<Self> {
        check_may_wait()?;
        let mut dev = 0;
        // SAFETY: The path is a string, and `dev` is valid for writes.
        to_result(unsafe { bindings::lookup_bdev(path.as_char_ptr(), &mut dev) })?;
        Self::open(dev, access)
    }

    /// Opens the block device with these device numbers.
    ///
    /// # Errors
    ///
    /// * `EINVAL` if C has no room for the numbers, `ENXIO` if there is no such device.
    /// * `EBUSY` if it is mounted or has an exclusive opener, `EACCES` if it is read-only, `EPERM`
    ///   by the rules of the control group, and what its driver returns.
    /// * `EDEADLK` in a callback of the block layer or in another context that cannot wait for I/O.
    /// * `ENOMEM` if out of memory. While the parameters of the module are being parsed, `EAGAIN`.
    /// * If this code is part of a module, `ELOOP` for a disk of that module, which could not be
    ///   unloaded any more, and `ENOTSUPP` without sysfs.
    pub fn open_by_dev(major: u32, minor: u32, access: Access) -> Result<Self> {
        if major >= 1 << (u32::BITS - bindings::MINORBITS) || minor >= 1 << bindings::MINORBITS {
            return Err(EINVAL);
        }
        check_may_wait()?;
        Self::open(major << bindings::MINORBITS | minor, access)
    }

    fn open(dev: bindings::dev_t, access: Access) -> Result<Self> {
        let pin = ModulePin::of_this_code()?;
        let inner = LateDrop::new(pin, OpenFile::new(dev, access), GFP_KERNEL)?;
        Ok(Self {
            inner: Arc::new(inner, GFP_KERNEL)?,
        })
    }

    /// Returns the capacity. It changes when the device is resized.
    pub fn capacity(&self) -> Sectors {
        // SAFETY: By the type invariant of `OpenFile`.
        Sectors(unsafe { bindings::bdev_nr_sectors(self.as_raw()) })
    }

    /// Returns the limits of a disk that passes its I/O to this device as it is.
    ///
    /// They do not follow what changes afterwards. May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for a zoned device, and `EDEADLK` where this would wait for I/O that waits for
    /// the caller.
    pub fn limits(&self) -> Result<QueueLimits> {
        check_may_wait()?;
        // SAFETY: All zeros are valid limits.
        let mut raw = unsafe { core::mem::zeroed() };
        // SAFETY: By the type invariant of `OpenFile`, the device is open, so it has a queue.
        unsafe { bindings::bdev_get_limits(self.as_raw(), &mut raw) };
        QueueLimits::stacked_on(&raw)
    }

    /// Returns a pointer to C's block device.
    pub(super) fn as_raw(&self) -> *mut bindings::block_device {
        self.inner.bdev.as_ptr()
    }

    /// Returns whether it was opened to be written to.
    pub(super) fn is_writable(&self) -> bool {
        self.inner.access == Access::ReadWrite
    }

    /// Returns a reference, which may be dropped in any context.
    pub(super) fn get(&self) -> BdevRef {
        self.inner.clone()
    }
}

impl OpenFile {
    fn new(dev: bindings::dev_t, access: Access) -> Result<Self> {
        let mut holder = KBox::new(0, GFP_KERNEL)?;
        // SAFETY: The holder is unique, and has no operations.
        let file = from_err_ptr(unsafe {
            bindings::bdev_file_open_by_dev(
                dev,
                access.as_raw(),
                ptr::from_mut(&mut *holder).cast(),
                ptr::null(),
            )
        })?;
        // SAFETY: C has just opened it.
        let bdev = unsafe { bindings::file_bdev(file) };
        let (Some(file), Some(bdev)) = (NonNull::new(file), NonNull::new(bdev)) else {
            return Err(ENXIO);
        };
        // INVARIANT: C has just opened it for the holder.
        let this = Self {
            file,
            bdev,
            access,
            _holder: holder,
        };
        // SAFETY: By the type invariant.
        if access == Access::ReadWrite && unsafe { bindings::bdev_read_only(bdev.as_ptr()) } {
            return Err(EACCES);
        }
        #[cfg(MODULE)]
        if this.is_of_this_module() {
            return Err(ELOOP);
        }
        Ok(this)
    }

    /// Returns whether the disk is one of the module that contains this code.
    #[cfg(MODULE)]
    fn is_of_this_module(&self) -> bool {
        extern "C" {
            static __this_module: crate::types::Opaque<bindings::module>;
        }
        // SAFETY: By the type invariant, the device is open, so it has a disk.
        let disk = unsafe { (*self.bdev.as_ptr()).bd_disk };
        // SAFETY: As above. C does not change the field.
        let operations = unsafe { (*disk).fops };
        // SAFETY: As above.
        let owner = unsafe { (*operations).owner };
        owner == crate::types::Opaque::cast_into(&raw const __this_module)
    }

    /// Closes the device before this returns, where the module must not stay in use.
    #[cfg(MODULE)]
    fn close(&mut self) {
        // SAFETY: By the type invariant, `self` owns the reference.
        unsafe { bindings::bdev_yield_claim(self.file.as_ptr()) };
        // SAFETY: As above. It is not used after this, and nobody else has one.
        unsafe { bindings::__fput_sync(self.file.as_ptr()) };
    }

    /// Gives up the claim at once. C closes the device when this task returns to user space, or in
    /// a worker.
    #[cfg(not(MODULE))]
    fn close(&mut self) {
        // SAFETY: By the type invariant, `self` owns the reference, which is not used after this.
        unsafe { bindings::bdev_fput(self.file.as_ptr()) };
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.close();
    }
}
