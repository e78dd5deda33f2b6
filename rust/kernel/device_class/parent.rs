// SPDX-License-Identifier: GPL-2.0

//! The device that a disk, or another device, is a child of, with the ancestors of that device.
//!
//! When a disk is removed, C walks from it to the root of the device tree
//! (`pm_runtime_set_memalloc_noio()`). A device that was removed holds no reference to its parent,
//! so a disk that remains longer than its device needs references of its own.
//!
//! C header: [`include/linux/device.h`](srctree/include/linux/device.h)

use crate::{
    bindings,
    device::{
        Bound,
        Device, //
    },
    late_drop::LateDrop,
    module_pin::ModulePin,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};
use core::ptr;

/// A device that disks are children of.
///
/// It is made while a driver is bound to the device. Disks may be added later, where the device is
/// not known to be bound.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::{gendisk::{GenDiskBuilder, NewDisk, Parent}, mq::{Operations, TagSet}},
///     device::{Bound, Device},
///     prelude::*,
///     sync::{static_lock_class, Arc},
/// };
///
/// fn build<T: Operations<QueueData = ()>>(
///     dev: &Device<Bound>,
///     tags: Arc<TagSet<T>>,
/// ) -> Result<NewDisk<T>> {
///     GenDiskBuilder::new(tags, static_lock_class!())
///         .parent(Parent::new(dev)?)
///         .build(c"rust_child", Ok(()))
/// }
/// ```
///
/// # Invariants
///
/// `directory` is that of the first of `ancestors` when this was made.
pub struct Parent {
    /// References to the device, its parent, and so on. There is at least that to the device.
    ancestors: KVec<ARef<Device>>,
    /// C adds a child to the directory without a lock, even while another task removes the device.
    /// The directory does not take a child then, but its memory must be there.
    _directory: LateDrop<Directory>,
}

/// The directory of a device in sysfs.
///
/// To put the last reference takes a spinlock that is not irq-safe, so this must not be dropped in
/// an interrupt handler.
///
/// # Invariants
///
/// It owns a reference to the directory, or the pointer is null, as it is without sysfs.
struct Directory(*mut bindings::kernfs_node);

// SAFETY: A reference is not tied to a thread.
unsafe impl Send for Directory {}

// SAFETY: As above, and nothing is done by a shared reference.
unsafe impl Sync for Directory {}

impl Directory {
    /// # Safety
    ///
    /// The device is in the system.
    unsafe fn of(dev: &Device) -> Result<LateDrop<Self>> {
        let pin = ModulePin::of_this_code()?;
        let raw = ptr::from_ref(dev).cast_mut().cast();
        // INVARIANT: The reference is taken here.
        //
        // SAFETY: By the safety requirement, the device has its directory.
        let directory = Self(unsafe { bindings::device_directory_get(raw) });
        LateDrop::new(pin, Ok(directory), GFP_KERNEL)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::device_directory_put(self.0) };
    }
}

impl Parent {
    /// Makes a device a parent of disks. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if out of memory.
    pub fn new(parent: &Device<Bound>) -> Result<Arc<Self>> {
        // SAFETY: A device that is bound is in the system.
        let directory = unsafe { Directory::of(parent) }?;
        let mut ancestors = KVec::new();
        let mut next: &Device = parent;
        loop {
            ancestors.push(next.into(), GFP_KERNEL)?;
            let raw = ptr::from_ref(next).cast::<bindings::device>();
            // SAFETY: The device is in the system, as `parent` is, because that is bound. Nothing
            // moves it to another parent meanwhile: the subsystems that move devices have none with
            // drivers in Rust below.
            let parent = unsafe { (*raw).parent };
            if parent.is_null() {
                return Self::with(ancestors, directory);
            }
            // SAFETY: A device that is in the system holds a reference to its parent. The type is a
            // transparent wrapper.
            next = unsafe { &*parent.cast_const().cast::<Device>() };
        }
    }

    /// Makes a device a parent that has this parent itself, or none.
    ///
    /// # Safety
    ///
    /// The device is in the system, and was added with that parent.
    pub(super) unsafe fn below(dev: &Device, parent: Option<&Self>) -> Result<Arc<Self>> {
        // SAFETY: By the safety requirement.
        let directory = unsafe { Directory::of(dev) }?;
        let mut ancestors = KVec::new();
        ancestors.push(dev.into(), GFP_KERNEL)?;
        for ancestor in parent.iter().flat_map(|parent| parent.ancestors.iter()) {
            ancestors.push(ancestor.clone(), GFP_KERNEL)?;
        }
        Self::with(ancestors, directory)
    }

    fn with(ancestors: KVec<ARef<Device>>, directory: LateDrop<Directory>) -> Result<Arc<Self>> {
        // INVARIANT: The callers pass the directory of the first one.
        let this = Self {
            ancestors,
            _directory: directory,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Returns the number of the node whose memory is nearest to the device; -1 if it is not known.
    pub fn numa_node(&self) -> i32 {
        // SAFETY: The device is valid.
        unsafe { bindings::device_numa_node(self.as_raw()) }
    }

    /// Returns C's pointer to the device.
    pub(crate) fn as_raw(&self) -> *mut bindings::device {
        match self.ancestors.first() {
            Some(parent) => ptr::from_ref(&**parent).cast_mut().cast(),
            None => ptr::null_mut(),
        }
    }
}
