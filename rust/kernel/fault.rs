// SPDX-License-Identifier: GPL-2.0

//! Faults that happen on demand, to see how others cope.
//!
//! A driver asks a [`Fault`] each time that something could fail. Mostly it says no. How often it
//! says yes is up to the user, who sets the attributes in its directory in configfs, if the driver
//! [adds](crate::configfs::DefaultGroups::add_fault) one, or gives a text to start from.
//!
//! Without `CONFIG_FAULT_INJECTION_CONFIGFS` no fault ever happens, and nothing is left of it in
//! the code.
//!
//! C header: [`include/linux/fault-inject.h`](srctree/include/linux/fault-inject.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{fault::{Fault, FaultSettings}, prelude::*};
//!
//! // Every second time, twice.
//! let settings = FaultSettings { verbose: 0, ..FaultSettings::parse(c"2,100,0,2")? };
//! let fault = Fault::new(c"rust_doctest", &settings)?;
//!
//! let failures = (0..10).filter(|_| fault.should_fail()).count();
//! assert_eq!(failures, if cfg!(CONFIG_FAULT_INJECTION_CONFIGFS) { 2 } else { 0 });
//!
//! assert_eq!(FaultSettings::parse(c"2,100"), Err(EINVAL));
//! # Ok::<(), Error>(())
//! ```

use crate::prelude::*;

/// When a [`Fault`] happens.
///
/// # Examples
///
/// ```
/// use kernel::fault::FaultSettings;
///
/// // By default it never does; the user sees once, at most, that it did.
/// let settings = FaultSettings::default();
/// assert_eq!((settings.probability, settings.times), (0, 1));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FaultSettings {
    /// At every so-manieth occasion.
    pub interval: usize,
    /// In so many cases of a hundred.
    pub probability: usize,
    /// Not at so many occasions to begin with.
    pub space: i32,
    /// So many times at most, or without end if it is -1.
    pub times: i32,
    /// 0 says nothing in the kernel log, 1 that there is a fault, 2 also from where it came.
    pub verbose: usize,
}

impl Default for FaultSettings {
    fn default() -> Self {
        Self {
            interval: 1,
            probability: 0,
            space: 0,
            times: 1,
            verbose: 2,
        }
    }
}

impl FaultSettings {
    /// Reads `<interval>,<probability>,<space>,<times>`, as module parameters have it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are not four numbers.
    pub fn parse(text: &CStr) -> Result<Self> {
        imp::parse(text)
    }
}

/// A fault that happens when the user wants it to: C's `struct fault_attr`.
///
/// # Examples
///
/// ```
/// use kernel::{fault::Fault, prelude::*};
///
/// fn open(broken: &Fault) -> Result {
///     if broken.should_fail() {
///         return Err(EIO);
///     }
///     // ...
///     Ok(())
/// }
/// # open(&Fault::new(c"rust_doctest_open", &Default::default())?)?;
/// # Ok::<(), Error>(())
/// ```
pub struct Fault(imp::Inner);

impl Fault {
    /// Makes a fault; `name` is that of its directory, which is not there before it is
    /// [added](crate::configfs::DefaultGroups::add_fault).
    ///
    /// # Errors
    ///
    /// `ENOMEM`; where this code is not built in, also `EAGAIN` while the parameters of the module
    /// are being parsed.
    pub fn new(name: &CStr, settings: &FaultSettings) -> Result<Self> {
        imp::Inner::new(name, settings).map(Self)
    }

    /// Whether to fail now. It counts how often it is asked, so ask once on each occasion.
    #[inline]
    pub fn should_fail(&self) -> bool {
        self.0.should_fail()
    }

    /// The directory, which is given once, with a reference to it.
    #[cfg(CONFIG_FAULT_INJECTION_CONFIGFS)]
    pub(crate) fn take_group(&self) -> Option<*mut crate::bindings::config_group> {
        self.0.take_group()
    }
}

#[cfg(CONFIG_FAULT_INJECTION_CONFIGFS)]
mod imp {
    use super::FaultSettings;
    use crate::{
        bindings,
        module_pin::ModulePin,
        prelude::*,
        sync::atomic::{
            Atomic,
            Relaxed, //
        }, //
    };
    use core::{
        ffi::c_void,
        ptr::NonNull, //
    };

    pub(super) fn parse(text: &CStr) -> Result<FaultSettings> {
        let mut settings = FaultSettings::default();
        // SAFETY: The text is NUL-terminated, and the rest is valid for writes.
        let parsed = unsafe {
            bindings::fault_parse(
                text.as_char_ptr(),
                &mut settings.interval,
                &mut settings.probability,
                &mut settings.space,
                &mut settings.times,
            )
        };
        parsed.then_some(settings).ok_or(EINVAL)
    }

    /// # Invariants
    ///
    /// It owns a reference to `group`, which `fault_new` has made.
    pub(super) struct Inner {
        group: NonNull<bindings::config_group>,
        taken: Atomic<bool>,
    }

    // SAFETY: C does not care which task asks, and counts its references atomically.
    unsafe impl Send for Inner {}

    // SAFETY: C lets any number of tasks ask while others turn the knobs.
    unsafe impl Sync for Inner {}

    impl Inner {
        pub(super) fn new(name: &CStr, settings: &FaultSettings) -> Result<Self> {
            // C calls this code when another module puts the last reference, too: one that it has
            // to the target of a symbolic link.
            let pin = KBox::new(ModulePin::of_this_code()?, GFP_KERNEL)?;
            let pin = KBox::into_raw(pin);
            // SAFETY: The name is NUL-terminated, and copied. The box is given up to `let_go`.
            let group = unsafe {
                bindings::fault_new(
                    name.as_char_ptr(),
                    settings.interval,
                    settings.probability,
                    settings.space,
                    settings.times,
                    settings.verbose,
                    pin.cast(),
                    Some(let_go),
                )
            };
            let Some(group) = NonNull::new(group) else {
                // SAFETY: It came out of the box above, and C has not kept it.
                drop(unsafe { KBox::from_raw(pin) });
                return Err(ENOMEM);
            };
            // INVARIANT: It came with a reference.
            Ok(Self {
                group,
                taken: Atomic::new(false),
            })
        }

        #[inline]
        pub(super) fn should_fail(&self) -> bool {
            // SAFETY: By the type invariant.
            unsafe { bindings::fault_should_fail(self.group.as_ptr()) }
        }

        pub(super) fn take_group(&self) -> Option<*mut bindings::config_group> {
            let group = self.group.as_ptr();
            // Relaxed: only one of several callers must win.
            if self.taken.xchg(true, Relaxed) {
                return None;
            }
            // SAFETY: By the type invariant, there is a reference already.
            unsafe { bindings::config_item_get(&raw mut (*group).cg_item) };
            Some(group)
        }
    }

    /// Lets this code go.
    ///
    /// # Safety
    ///
    /// `pin` came out of a box, which is given up.
    unsafe extern "C" fn let_go(pin: *mut c_void) {
        // SAFETY: By the safety requirement.
        drop(unsafe { KBox::from_raw(pin.cast::<ModulePin>()) });
    }

    impl Drop for Inner {
        fn drop(&mut self) {
            // SAFETY: By the type invariant, the reference is ours, and gone after this.
            unsafe { bindings::config_item_put(&raw mut (*self.group.as_ptr()).cg_item) };
        }
    }
}

#[cfg(not(CONFIG_FAULT_INJECTION_CONFIGFS))]
mod imp {
    use super::FaultSettings;
    use crate::prelude::*;

    pub(super) fn parse(_text: &CStr) -> Result<FaultSettings> {
        Err(EINVAL)
    }

    pub(super) struct Inner;

    impl Inner {
        pub(super) fn new(_name: &CStr, _settings: &FaultSettings) -> Result<Self> {
            Ok(Self)
        }

        #[inline]
        pub(super) fn should_fail(&self) -> bool {
            false
        }
    }
}
