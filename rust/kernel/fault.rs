// SPDX-License-Identifier: GPL-2.0

//! Fault injection that the user configures.
//!
//! A driver calls [`Fault::should_fail`] wherever something could fail. It returns false most of
//! the time. The user configures how often it returns true by the attributes of its directory in
//! configfs, if the driver [adds](crate::configfs::DefaultGroups::add_fault) one, or by a text with
//! the initial settings.
//!
//! Without `CONFIG_FAULT_INJECTION_CONFIGFS` faults never happen, and the checks are compiled out.
//!
//! C header: [`include/linux/fault-inject.h`](srctree/include/linux/fault-inject.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{fault::{Fault, FaultSettings}, prelude::*};
//!
//! // Every second call fails, at most twice.
//! let settings = FaultSettings { verbose: 0, ..FaultSettings::parse(c"2,100,0,2")? };
//! let fault = Fault::new(c"rust_doctest", &settings)?;
//!
//! let failures = (0..10).filter(|_| fault.should_fail()).count();
//! assert_eq!(failures, if cfg!(CONFIG_FAULT_INJECTION_CONFIGFS) { 2 } else { 0 });
//!
//! assert_eq!(FaultSettings::parse(c"2,100").is_err(), cfg!(CONFIG_FAULT_INJECTION_CONFIGFS));
//! # Ok::<(), Error>(())
//! ```

use crate::prelude::*;

/// The settings of a [`Fault`].
///
/// # Examples
///
/// ```
/// use kernel::fault::FaultSettings;
///
/// // By default it never happens, and at most once when the user raises the probability.
/// let settings = FaultSettings::default();
/// assert_eq!((settings.probability, settings.times), (0, 1));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FaultSettings {
    /// Only every `interval`-th call can fail.
    pub interval: usize,
    /// The probability of a failure in percent.
    pub probability: usize,
    /// The number of the first call that can fail, counted from 1. 0 is the same as 1.
    pub space: i32,
    /// The maximum number of failures, or -1 for no limit.
    pub times: i32,
    /// 0 logs nothing, 1 logs that a fault was injected, 2 also logs a stack trace.
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
    /// Parses `<interval>,<probability>,<space>,<times>`, the format of module parameters.
    ///
    /// Without `CONFIG_FAULT_INJECTION_CONFIGFS` these are the defaults, whatever the text.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the text is not four numbers.
    pub fn parse(text: &CStr) -> Result<Self> {
        imp::parse(text)
    }
}

/// A fault that the user can inject: C's `struct fault_attr`.
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
    /// Creates a fault; `name` is the name of its directory, which does not exist until it is
    /// [added](crate::configfs::DefaultGroups::add_fault).
    ///
    /// # Errors
    ///
    /// `ENOMEM` if out of memory; where this code is not built in, also `EAGAIN` while the
    /// parameters of the module are being parsed.
    pub fn new(name: &CStr, settings: &FaultSettings) -> Result<Self> {
        imp::Inner::new(name, settings).map(Self)
    }

    /// Returns whether to fail now. Calls are counted, so call this only once on each occasion.
    #[inline]
    pub fn should_fail(&self) -> bool {
        self.0.should_fail()
    }

    /// Returns the directory with a reference to it, on the first call only.
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
        // SAFETY: The text is NUL-terminated, and the other pointers are valid for writes.
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
    /// It owns a reference to `group`, which `fault_new` has created.
    pub(super) struct Inner {
        group: NonNull<bindings::config_group>,
        taken: Atomic<bool>,
    }

    // SAFETY: C does not depend on the calling task, and counts references atomically.
    unsafe impl Send for Inner {}

    // SAFETY: C allows any number of tasks to check for a fault while others change its attributes.
    unsafe impl Sync for Inner {}

    impl Inner {
        pub(super) fn new(name: &CStr, settings: &FaultSettings) -> Result<Self> {
            // C also calls this code when another module puts the last reference, for example that
            // to the target of a symbolic link.
            let pin = KBox::new(ModulePin::of_this_code()?, GFP_KERNEL)?;
            let pin = KBox::into_raw(pin);
            // SAFETY: The name is NUL-terminated, and copied. Ownership of the box passes to
            // `drop_pin`.
            let group = unsafe {
                bindings::fault_new(
                    name.as_char_ptr(),
                    settings.interval,
                    settings.probability,
                    settings.space,
                    settings.times,
                    settings.verbose,
                    pin.cast(),
                    Some(drop_pin),
                )
            };
            let Some(group) = NonNull::new(group) else {
                // SAFETY: It came from the box above, and C has not kept it.
                drop(unsafe { KBox::from_raw(pin) });
                return Err(ENOMEM);
            };
            // INVARIANT: The group comes with a reference.
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
            // Relaxed: it only matters that one of several callers gets the group.
            if self.taken.xchg(true, Relaxed) {
                return None;
            }
            // SAFETY: By the type invariant, there is a reference already.
            unsafe { bindings::config_item_get(&raw mut (*group).cg_item) };
            Some(group)
        }
    }

    /// Drops the pin that keeps this code in memory.
    ///
    /// # Safety
    ///
    /// `pin` came from a box, of which the caller passes ownership.
    unsafe extern "C" fn drop_pin(pin: *mut c_void) {
        // SAFETY: By the safety requirement.
        drop(unsafe { KBox::from_raw(pin.cast::<ModulePin>()) });
    }

    impl Drop for Inner {
        fn drop(&mut self) {
            // SAFETY: By the type invariant, the reference is ours, and it is not used after this.
            unsafe { bindings::config_item_put(&raw mut (*self.group.as_ptr()).cg_item) };
        }
    }
}

#[cfg(not(CONFIG_FAULT_INJECTION_CONFIGFS))]
mod imp {
    use super::FaultSettings;
    use crate::prelude::*;

    pub(super) fn parse(_text: &CStr) -> Result<FaultSettings> {
        Ok(FaultSettings::default())
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
