// SPDX-License-Identifier: GPL-2.0

//! A class, which is registered until nothing uses it.
//!
//! C header: [`include/linux/device/class.h`](srctree/include/linux/device/class.h)

use crate::{
    bindings,
    error::to_result,
    late_drop::{
        self,
        LateDrop, //
    },
    module_pin::ModulePin,
    prelude::*,
    str::as_char_ptr_in_const_context,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
    types::Opaque, //
};

/// A class of devices: C's `struct class`.
///
/// It is a `static` of a driver, and has no effect before it is [registered](Registration).
///
/// # Invariants
///
/// The class and its device numbers are registered if and only if `users` is neither 0 nor `BUSY`.
/// Then it is the number of references. Who has set it to `BUSY` may register or unregister them.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device_class::{Class, Registration},
///     module::this_module,
///     prelude::*,
/// };
///
/// static CLASS: Class = Class::new(c"rust_doctest_class", 0);
///
/// let registration = Registration::new(&CLASS, this_module::<crate::LocalModule>())?;
/// let again = Registration::new(&CLASS, this_module::<crate::LocalModule>());
/// assert_eq!(again.err(), Some(EBUSY));
/// # drop(registration);
/// # Ok::<(), Error>(())
/// ```
pub struct Class {
    raw: Opaque<bindings::class>,
    name: &'static CStr,
    minors: u32,
    /// The first device number, which is valid while the class is registered.
    first: Atomic<u32>,
    /// The minor numbers that devices have. It is initialised while the class is registered.
    taken: Opaque<bindings::ida>,
    users: Atomic<usize>,
}

/// Instead of a number of users: the class is being registered or unregistered.
const BUSY: usize = usize::MAX;

// SAFETY: C synchronises access to the class. The numbers are atomic.
unsafe impl Sync for Class {}

// SAFETY: A class is not tied to a thread.
unsafe impl Send for Class {}

impl Class {
    /// Makes a class whose devices have minor numbers below `minors`, at most 1 << 20. If that is
    /// zero, they have no device files.
    pub const fn new(name: &'static CStr, minors: u32) -> Self {
        assert!(minors <= 1 << 20);
        // INVARIANT: It is not registered.
        Self {
            raw: Opaque::new(bindings::class {
                name: as_char_ptr_in_const_context(name),
                ..pin_init::zeroed()
            }),
            name,
            minors,
            first: Atomic::new(0),
            taken: Opaque::new(pin_init::zeroed()),
            users: Atomic::new(0),
        }
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static CStr {
        self.name
    }

    pub(super) fn as_raw(&self) -> *const bindings::class {
        self.raw.get()
    }

    /// Takes a reference to a class that is registered.
    pub(super) fn get(&'static self) -> Result<ClassRef> {
        let mut users = self.users.load(Relaxed);
        while users != 0 && users < BUSY - 1 {
            match self.users.cmpxchg(users, users + 1, Full) {
                // INVARIANT: The class is registered, and the reference is counted.
                Ok(_) => return Ok(ClassRef(self)),
                Err(now) => users = now,
            }
        }
        Err(ENODEV)
    }

    /// Registers what C is to know.
    ///
    /// # Safety
    ///
    /// The caller has set `users` to [`BUSY`], from zero.
    unsafe fn register(&'static self) -> Result {
        // SAFETY: No device has a number, so nothing else accesses it, and it has no memory.
        unsafe { bindings::class_minors_init(self.taken.get()) };
        if self.minors > 0 {
            let mut first = 0;
            // SAFETY: The result is valid for writes, and the name is static.
            to_result(unsafe {
                bindings::alloc_chrdev_region(&mut first, 0, self.minors, self.name.as_char_ptr())
            })?;
            self.first.store(first, Relaxed);
        }
        // SAFETY: The class is static, initialised, and not registered.
        let registered = to_result(unsafe { bindings::class_register(self.as_raw()) });
        if registered.is_err() {
            // SAFETY: They were allocated above.
            unsafe { self.free_numbers() };
        }
        registered
    }

    /// # Safety
    ///
    /// The device numbers are allocated, if there are any, and no device has one.
    unsafe fn free_numbers(&self) {
        if self.minors > 0 {
            // SAFETY: By the safety requirement.
            unsafe { bindings::unregister_chrdev_region(self.first.load(Relaxed), self.minors) };
        }
    }
}

/// A reference to a class that is registered.
///
/// # Invariants
///
/// It is counted in `users` of the class.
pub(super) struct ClassRef(&'static Class);

impl ClassRef {
    /// Returns C's class.
    pub(super) fn as_raw(&self) -> *const bindings::class {
        self.0.as_raw()
    }

    /// Takes a minor number.
    ///
    /// C does not look whether another device has it. It would forget the wrong one of the two when
    /// one is removed.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the class does not have the minor; `EBUSY` if a device has it; `ENOMEM` if out
    /// of memory.
    pub(super) fn take(&self, minor: u32) -> Result<Number> {
        let class = self.0;
        if minor >= class.minors {
            return Err(EINVAL);
        }
        let reference = class.get()?;
        // SAFETY: By the type invariant the class is registered, so this is initialised.
        let taken = unsafe {
            bindings::ida_alloc_range(class.taken.get(), minor, minor, bindings::GFP_KERNEL)
        };
        match to_result(taken.min(0)) {
            Err(error) if error == ENOSPC => Err(EBUSY),
            // INVARIANT: It was just taken.
            taken => taken.map(|()| Number {
                class: reference,
                minor,
            }),
        }
    }
}

/// A minor number of a class, which no other device has while this exists.
///
/// # Invariants
///
/// The minor is taken.
pub(super) struct Number {
    class: ClassRef,
    minor: u32,
}

impl Number {
    /// Returns the device number.
    pub(super) fn as_raw(&self) -> bindings::dev_t {
        // The region that was allocated begins with minor zero.
        self.class.0.first.load(Relaxed) + self.minor
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and the class is registered.
        unsafe { bindings::ida_free(self.class.0.taken.get(), self.minor) };
    }
}

impl Drop for ClassRef {
    fn drop(&mut self) {
        let class = self.0;
        let mut users = class.users.load(Relaxed);
        loop {
            // The last one unregisters.
            let fewer = if users == 1 { BUSY } else { users - 1 };
            match class.users.cmpxchg(users, fewer, Full) {
                Ok(_) if users > 1 => return,
                Ok(_) => break,
                Err(now) => users = now,
            }
        }
        // SAFETY: By the type invariant of `Class`, it is registered, and no device is left.
        unsafe { bindings::class_unregister(class.as_raw()) };
        // SAFETY: As above.
        unsafe { class.free_numbers() };
        // INVARIANT: It is not registered any more.
        class.users.xchg(0, Full);
    }
}

/// Keeps a [`Class`] registered until dropped. Devices that are left keep it registered, too.
///
/// Where the caller that drops this cannot wait, a work item unregisters the class a little later.
///
/// A module that leaks it, by [`core::mem::forget`] or in a `static`, is never freed: the task that
/// unloads it waits forever.
pub struct Registration {
    _class: LateDrop<ClassRef>,
}

impl Registration {
    /// Registers a class, which is one of `owner`, or of a module that `owner` needs. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is registered, or if there are no device numbers; `EEXIST` if there is another
    /// class with that name, about which the kernel warns; `ENOMEM` if out of memory; `EDEADLK`
    /// where the caller must not sleep; `EAGAIN` while the parameters of the module are parsed;
    /// `ENOTSUPP` if the module cannot be kept in memory.
    pub fn new(class: &'static Class, owner: &'static ThisModule) -> Result<Self> {
        late_drop::check_may_sleep()?;
        let pin = ModulePin::new(owner)?;
        class.users.cmpxchg(0, BUSY, Full).map_err(|_| EBUSY)?;
        // SAFETY: It was just set.
        let registered = unsafe { class.register() };
        // INVARIANT: The class is registered with one reference, or is not registered.
        class.users.xchg(usize::from(registered.is_ok()), Full);
        registered?;
        // INVARIANT: The reference was just counted.
        let class = ClassRef(class);
        Ok(Self {
            _class: LateDrop::new(pin, Ok(class), GFP_KERNEL)?,
        })
    }
}
