// SPDX-License-Identifier: GPL-2.0

//! The memory of a device of a class, which remains as long as C has a reference.
//!
//! C header: [`include/linux/device.h`](srctree/include/linux/device.h)

use super::{
    attribute::{
        Attribute,
        Table, //
    },
    class::{
        ClassRef,
        Number, //
    },
    parent::Parent, //
};
use crate::{
    bindings,
    error::to_result,
    fs::File,
    late_drop::LateDrop,
    module::this_module,
    module_pin::ModulePin,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};
use core::{
    mem::offset_of,
    ptr::NonNull, //
};

/// What tasks can do with a device of a class: the data of the device.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device_class::{Attribute, Operations},
///     fs::File,
///     prelude::*,
///     sync::ArcBorrow,
/// };
///
/// struct Clock {
///     hertz: u32,
/// }
///
/// #[vtable]
/// impl Operations for Clock {
///     const ATTRIBUTES: &'static [Attribute<Self>] = &[Attribute::ro(
///         c"hertz",
///         |clock: &Clock, page| writeln!(page, "{}", clock.hertz),
///     )];
///
///     fn ioctl(this: ArcBorrow<'_, Self>, _file: &File, cmd: u32, _arg: usize) -> Result<isize> {
///         match cmd {
///             0x4b01 => Ok(this.hertz as isize),
///             _ => Err(ENOTTY),
///         }
///     }
/// }
/// ```
#[vtable]
pub trait Operations: Sized + Send + Sync + 'static {
    /// The attribute files of the device.
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];

    /// Is called for `ioctl` of an open file, in the task that has it open. Tasks may call this at
    /// the same time, and while the device is removed. It is not called for a device that was
    /// removed before.
    ///
    /// `arg` is a number, or an address in the memory of the task, in which no value has another
    /// layout for a task of 32 bits.
    ///
    /// By default there is no ioctl: `ENOTTY`.
    fn ioctl(this: ArcBorrow<'_, Self>, file: &File, cmd: u32, arg: usize) -> Result<isize> {
        let _ = (this, file, cmd, arg);
        Err(ENOTTY)
    }
}

/// How a device appears in the system.
pub struct ClassDeviceOptions<'a> {
    /// Its name, also that of its file in `/dev`.
    pub name: &'a CStr,
    /// The device that it is a child of. It has none if this is [`None`].
    pub parent: Option<Arc<Parent>>,
    /// The minor number of its file. It has no file if this is [`None`].
    pub minor: Option<u32>,
}

/// The data of a device, and what has to remain as long as that is in use.
struct State<T> {
    data: Arc<T>,
    parent: Option<Arc<Parent>>,
    /// Says whether the module is live.
    pin: ModulePin,
}

/// A device as C knows it, with what belongs to it.
///
/// # Invariants
///
/// It is in an allocation of its own, which is freed when the last reference to `dev` is put.
#[pin_data]
#[repr(C)]
pub(super) struct Inner<T: Operations> {
    /// Comes first, so that a pointer to it is also a pointer to the structure.
    #[pin]
    dev: Opaque<bindings::device>,
    #[pin]
    cdev: Opaque<bindings::cdev>,
    /// Whether the device was removed from the system, or is being removed.
    is_removed: Atomic<bool>,
    /// Before the data, which it points to.
    table: Table<T>,
    /// Keeps the module that contains the code that C calls. The last reference may be put where
    /// the caller cannot sleep, which to drop a pin does.
    state: LateDrop<State<T>>,
}

// SAFETY: C synchronises access to the device. The rest can be sent.
unsafe impl<T: Operations> Send for Inner<T> {}

// SAFETY: As above.
unsafe impl<T: Operations> Sync for Inner<T> {}

impl<T: Operations> Inner<T> {
    /// # Safety
    ///
    /// `cdev` must be that of an `Inner<T>`.
    pub(super) unsafe fn from_cdev(cdev: *mut bindings::cdev) -> *const Self {
        // SAFETY: By the safety requirement.
        unsafe { cdev.byte_sub(offset_of!(Self, cdev)) }
            .cast_const()
            .cast()
    }

    /// Takes a reference.
    ///
    /// # Safety
    ///
    /// The caller has a reference to the device.
    pub(super) unsafe fn get(this: *const Self) {
        // SAFETY: By the safety requirement.
        unsafe { bindings::get_device(this.cast_mut().cast()) };
    }

    /// Puts a reference.
    ///
    /// # Safety
    ///
    /// The caller passes on a reference to the device.
    pub(super) unsafe fn put(this: *const Self) {
        // SAFETY: By the safety requirement.
        unsafe { bindings::put_device(this.cast_mut().cast()) };
    }

    /// Makes the device one that was removed.
    pub(super) fn set_removed(&self) {
        self.is_removed.store(true, Relaxed);
    }

    /// Returns the parent.
    pub(super) fn parent(&self) -> Option<&Parent> {
        self.state.parent.as_deref()
    }

    /// Fails after the device was removed.
    pub(super) fn check_there(&self) -> Result {
        if self.is_removed.load(Relaxed) {
            Err(ENODEV)
        } else {
            Ok(())
        }
    }

    /// Fails if the device must not be opened.
    pub(super) fn check_open(&self) -> Result {
        // If the module is not loaded in the end, its memory is freed although a file is open.
        if self.state.pin.is_not_live() {
            return Err(ENODEV);
        }
        self.check_there()
    }

    /// Returns the data.
    pub(super) fn data(&self) -> ArcBorrow<'_, T> {
        self.state.data.as_arc_borrow()
    }

    /// # Safety
    ///
    /// For C only, which calls this when the last reference was put.
    unsafe extern "C" fn release(dev: *mut bindings::device) {
        // SAFETY: By the type invariant.
        drop(unsafe { KBox::from_raw(dev.cast::<Self>()) });
    }
}

/// A reference to a device.
///
/// # Invariants
///
/// It owns a reference to the device.
pub(super) struct Reference<T: Operations>(NonNull<Inner<T>>);

// SAFETY: A reference is not tied to a thread.
unsafe impl<T: Operations> Send for Reference<T> {}

// SAFETY: As above, and what is shared is `Sync`.
unsafe impl<T: Operations> Sync for Reference<T> {}

impl<T: Operations> Reference<T> {
    /// Makes a device that is not in the system.
    ///
    /// `operations` are those of its files.
    pub(super) fn new(
        class: &ClassRef,
        options: &ClassDeviceOptions<'_>,
        number: Option<&Number>,
        operations: &'static bindings::file_operations,
        data: Arc<T>,
    ) -> Result<Self> {
        let owner = this_module::<T::OwnerModule>();
        // SAFETY: The data is in memory as long as `state`, which is dropped after the device was
        // removed.
        let table = unsafe { Table::new(T::ATTRIBUTES, &*data) }?;
        let parent = options.parent.clone();
        let raw_parent = parent
            .as_ref()
            .map_or(core::ptr::null_mut(), |it| it.as_raw());
        let state = State {
            data,
            parent,
            pin: ModulePin::new(owner)?,
        };
        let state = LateDrop::new(ModulePin::new(owner)?, Ok(state), GFP_KERNEL)?;
        let inner = KBox::pin_init(
            try_pin_init!(Inner {
                dev <- pin_init::init_zeroed(),
                cdev <- pin_init::init_zeroed(),
                is_removed: Atomic::new(false),
                table,
                state,
            }? Error),
            GFP_KERNEL,
        )?;
        // SAFETY: It remains where it is.
        let inner = KBox::into_raw(unsafe { Pin::into_inner_unchecked(inner) });
        let dev: *mut bindings::device = inner.cast();
        // SAFETY: The structure is all zero, in memory, and nothing else knows it.
        unsafe { bindings::device_initialize(dev) };
        // SAFETY: As above; from now on the last reference frees it.
        unsafe { (*dev).release = Some(Inner::<T>::release) };
        // INVARIANT: The allocation has one reference now.
        //
        // SAFETY: A box is not null.
        let this = Self(unsafe { NonNull::new_unchecked(inner) });
        // SAFETY: As above. The class is static.
        unsafe { (*dev).class = class.as_raw() };
        // SAFETY: As above. `state` keeps the parent.
        unsafe { (*dev).parent = raw_parent };
        // SAFETY: As above.
        let groups = unsafe { (*inner).table.as_raw() };
        // SAFETY: As above.
        unsafe { (*dev).groups = groups };
        // SAFETY: As above. C copies the name, which is no format.
        to_result(unsafe {
            bindings::dev_set_name(dev, c"%s".as_char_ptr(), options.name.as_char_ptr())
        })?;
        if let Some(number) = number {
            // SAFETY: As above.
            unsafe { (*dev).devt = number.as_raw() };
            // SAFETY: As above.
            let cdev = unsafe { (*inner).cdev.get() };
            // SAFETY: The structure is ours. The operations are static.
            unsafe { bindings::cdev_init(cdev, operations) };
            // SAFETY: As above.
            unsafe { (*cdev).owner = owner.as_ptr() };
        }
        Ok(this)
    }

    /// Returns what belongs to the device.
    pub(super) fn inner(&self) -> &Inner<T> {
        // SAFETY: By the type invariant, the device is there.
        unsafe { self.0.as_ref() }
    }

    /// Returns C's character device and device.
    pub(super) fn as_raw(&self) -> (*mut bindings::cdev, *mut bindings::device) {
        let inner = self.0.as_ptr();
        // SAFETY: By the type invariant, the device is there.
        (unsafe { (*inner).cdev.get() }, inner.cast())
    }
}

impl<T: Operations> Drop for Reference<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { Inner::put(self.0.as_ptr()) };
    }
}
