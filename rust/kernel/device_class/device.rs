// SPDX-License-Identifier: GPL-2.0

//! A device of a class, which is in the system until it is dropped.
//!
//! C header: [`include/linux/device.h`](srctree/include/linux/device.h)

use super::{
    class::{
        Class,
        ClassRef,
        Number, //
    },
    files::FileOperations,
    inner::{
        ClassDeviceOptions,
        Operations,
        Reference, //
    },
    parent::Parent, //
};
use crate::{
    bindings,
    device::Device,
    error::to_result,
    late_drop::{
        self,
        LateDrop, //
    },
    module::this_module,
    module_pin::ModulePin,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

/// A device that is or was in the system.
struct Added<T: Operations> {
    /// Whether it is in the system.
    is_added: bool,
    inner: Reference<T>,
    /// Until the device is removed.
    _number: Option<Number>,
    _class: ClassRef,
    _pin: ModulePin,
}

impl<T: Operations> Drop for Added<T> {
    fn drop(&mut self) {
        // If adding it failed, a task may have opened its file meanwhile.
        self.inner.inner().set_removed();
        if self.is_added {
            let (cdev, dev) = self.inner.as_raw();
            // Waits until no attribute is in use.
            //
            // SAFETY: The device is in the system, and is removed once.
            unsafe { bindings::cdev_device_del(cdev, dev) };
        }
    }
}

/// A device of a class, which is removed from the system when this is dropped.
///
/// Its data remains as long as a task has its file open, or C has a reference to it.
///
/// To drop this waits until no attribute of the device is in use, but not for calls of
/// [`Operations::ioctl`]. It must not be dropped by any of its attributes. Where the caller cannot
/// wait, a work item removes the device a little later.
///
/// The driver removes the children of a device before it removes the device.
///
/// A module that leaks it, by [`core::mem::forget`] or in a `static`, is never freed: the task that
/// unloads it waits forever.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device_class::{Class, ClassDevice, ClassDeviceOptions, Operations, Registration},
///     module::this_module,
///     prelude::*,
///     sync::Arc,
/// };
///
/// static CLASS: Class = Class::new(c"rust_doctest_device", 0);
///
/// struct Nothing;
///
/// #[vtable]
/// impl Operations for Nothing {}
///
/// let options = || ClassDeviceOptions { name: c"rust_doctest0", parent: None, minor: None };
/// // The class is not registered.
/// let device = ClassDevice::new(&CLASS, options(), Arc::new(Nothing, GFP_KERNEL)?);
/// assert_eq!(device.err(), Some(ENODEV));
///
/// let class = Registration::new(&CLASS, this_module::<crate::LocalModule>())?;
/// let device = ClassDevice::new(&CLASS, options(), Arc::new(Nothing, GFP_KERNEL)?)?;
/// assert_eq!(device.device().name(), c"rust_doctest0");
/// # drop(device);
/// # drop(class);
/// # Ok::<(), Error>(())
/// ```
pub struct ClassDevice<T: Operations>(LateDrop<Added<T>>);

impl<T: Operations> ClassDevice<T> {
    /// Adds a device of a class, which is registered. May sleep.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the class is not registered; `EINVAL` if the name is empty, or the class does
    /// not have the minor; `EEXIST` if there is such a name, about which the kernel warns, or
    /// `EBUSY` if there is such a minor; `ENOMEM` if out of memory; `EDEADLK` where the caller must
    /// not sleep; `EAGAIN` while the parameters of the module are parsed; `ENOTSUPP` if the module
    /// cannot be kept in memory.
    pub fn new(
        class: &'static Class,
        options: ClassDeviceOptions<'_>,
        data: Arc<T>,
    ) -> Result<Self> {
        late_drop::check_may_sleep()?;
        if options.name.is_empty() {
            return Err(EINVAL);
        }
        let owner = this_module::<T::OwnerModule>();
        let class = class.get()?;
        let number = options.minor.map(|minor| class.take(minor)).transpose()?;
        let operations = FileOperations::<T>::TABLE;
        let added = Added {
            is_added: false,
            inner: Reference::new(&class, &options, number.as_ref(), operations, data)?,
            _number: number,
            _class: class,
            _pin: ModulePin::new(owner)?,
        };
        let mut this = LateDrop::new(ModulePin::new(owner)?, Ok(added), GFP_KERNEL)?;
        let (cdev, dev) = this.inner.as_raw();
        // SAFETY: Both are initialised, and not in the system. If the device has no number, C does
        // not use `cdev`.
        to_result(unsafe { bindings::cdev_device_add(cdev, dev) })?;
        this.as_mut().is_added = true;
        Ok(Self(this))
    }

    /// Returns the data.
    pub fn data(&self) -> ArcBorrow<'_, T> {
        self.0.inner.inner().data()
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        let (_, dev) = self.0.inner.as_raw();
        // SAFETY: The device is there as long as the reference. The type is a transparent wrapper.
        unsafe { &*dev.cast_const().cast() }
    }

    /// Makes a symbolic link to another device in the directory of this one, with its name.
    ///
    /// It is removed with this device.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is such a file, about which the kernel warns; `ENOMEM` if out of memory.
    pub fn link_to<U: Operations>(&self, other: &ClassDevice<U>) -> Result {
        let (_, dev) = self.0.inner.as_raw();
        let (_, target) = other.0.inner.as_raw();
        // SAFETY: The device is there as long as the reference.
        let kobj = unsafe { &raw mut (*dev).kobj };
        // SAFETY: As above.
        let target = unsafe { &raw mut (*target).kobj };
        let name = other.device().name().as_char_ptr();
        // SAFETY: Both devices are there as long as the references, and are in the system.
        to_result(unsafe { bindings::sysfs_create_link(kobj, target, name) })
    }

    /// Makes the device a parent of others.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if out of memory.
    pub fn as_parent(&self) -> Result<Arc<Parent>> {
        // SAFETY: The device is in the system as long as `self`, and was added with its parent.
        unsafe { Parent::below(self.device(), self.0.inner.inner().parent()) }
    }
}
