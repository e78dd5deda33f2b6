// SPDX-License-Identifier: GPL-2.0

//! Resources of a device, which are released when its driver is unbound at the latest.
//!
//! Safe code can leak a value, so that it is never dropped. A resource that must not outlive the
//! binding of its device is therefore in an [`UntilUnbind`]. C releases it when the driver is
//! unbound, if that has not happened before. The parts that may be used after that check whether
//! the resource is still there.
//!
//! Unlike [`Devres`](crate::devres::Devres), the resource itself decides how its users wait for
//! each other, so they may sleep while they use it.
//!
//! C cuts its list of resources off once, then releases what was in it. A callback that runs
//! meanwhile still finds the device bound, but what it adds is not released by that unbinding: it
//! stays until it is dropped, or the device is removed, and no driver can be bound before that. A
//! driver avoids this, which [`Devres`](crate::devres::Devres) has in common, by adding nothing in
//! callbacks that run while its resources are released.
//!
//! C header: [`include/linux/device/devres.h`](srctree/include/linux/device/devres.h)

// Not used in all configurations.
#![allow(dead_code)]

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    error::to_result,
    late_drop::check_may_sleep,
    module_pin::ModulePin,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Completion, //
    },
};
use core::cell::UnsafeCell;

/// A resource of a device.
pub(crate) trait Release: Send + Sync + 'static {
    /// Releases the resource. This is called once, and may sleep.
    ///
    /// When this returns, the resource is not in use any more.
    fn release(&self);
}

/// A resource that is released when this is dropped, or when the driver of the device is unbound.
///
/// Where the caller that drops this certainly cannot sleep, such as in an interrupt, the resource
/// remains until the driver is unbound.
pub(crate) struct UntilUnbind<T: Release>(AtUnbind<T>);

/// A resource that is released when the driver of the device is unbound, or earlier by
/// [`Self::release`]. To drop this does not release it.
pub(crate) struct AtUnbind<T: Release> {
    dev: ARef<device::Device>,
    action: Arc<Action<T>>,
    /// The callback of C. A function that is generic has an address in each crate that uses it.
    callback: unsafe extern "C" fn(*mut c_void),
}

/// An action in C's list of what to do when the driver was unbound.
///
/// # Invariants
///
/// `pin` is accessed only by the one who has taken the action out of the list: C, to perform it, or
/// [`AtUnbind::release`].
#[pin_data]
struct Action<T: Release> {
    resource: Arc<T>,
    /// Whether a task releases the resource, or has released it.
    is_begun: Atomic<bool>,
    /// The task that is releasing it, or 0.
    releaser: Atomic<usize>,
    #[pin]
    released: Completion,
    /// Keeps the module that contains the callback. The device may have the driver of another one.
    pin: UnsafeCell<Option<ModulePin>>,
}

// SAFETY: By the type invariant, nothing accesses the pin concurrently.
unsafe impl<T: Release> Sync for Action<T> {}

// SAFETY: A resource and a pin can be sent.
unsafe impl<T: Release> Send for Action<T> {}

impl<T: Release> AtUnbind<T> {
    /// Takes over a resource of `dev`. It is released if this fails.
    ///
    /// `pin` keeps the module that contains the code of `T`.
    pub(crate) fn new(
        dev: &device::Device<Bound>,
        resource: Arc<T>,
        pin: ModulePin,
    ) -> Result<Self> {
        let owned = resource.clone();
        let action = Arc::pin_init(
            pin_init!(Action {
                resource: owned,
                is_begun: Atomic::new(false),
                releaser: Atomic::new(0),
                released <- Completion::new(),
                pin: UnsafeCell::new(Some(pin)),
            }),
            GFP_KERNEL,
        );
        let action = match action {
            Ok(action) => action,
            Err(error) => {
                resource.release();
                return Err(error);
            }
        };
        let this = Self {
            dev: dev.into(),
            action,
            callback: Self::unbound,
        };
        let data = Arc::into_raw(this.action.clone()).cast_mut();
        // SAFETY: The device is valid. If this succeeds, C calls the function with `data`, which
        // is a reference to the action, at most once. The pin keeps the function.
        let added =
            unsafe { bindings::devm_add_action(this.raw(), Some(this.callback), data.cast()) };
        if let Err(error) = to_result(added) {
            // SAFETY: `data` comes from `Arc::into_raw`, and C did not take it.
            drop(unsafe { Arc::from_raw(data) });
            this.action.release();
            return Err(error);
        }
        Ok(this)
    }

    /// Returns the resource.
    #[inline]
    pub(crate) fn resource(&self) -> &Arc<T> {
        &self.action.resource
    }

    /// Releases the resource, unless that has happened before. May sleep.
    ///
    /// When this returns, the resource is not in use any more, unless this very task is just
    /// releasing it.
    pub(crate) fn release(&self) {
        // C has the action until then, so that the unbinding waits.
        if !self.action.release() {
            return;
        }
        let data = Arc::as_ptr(&self.action).cast_mut();
        // SAFETY: The device is valid. C only compares the pointers. While `action` exists, `data`
        // is not the address of another one.
        let removed = unsafe {
            bindings::devm_remove_action_nowarn(self.raw(), Some(self.callback), data.cast())
        };
        if removed == 0 {
            // SAFETY: C had the reference from `new`, and does not call the function any more.
            let action = unsafe { Arc::from_raw(data) };
            // SAFETY: The action was just taken out.
            unsafe { Action::finish(action) };
        }
    }

    fn raw(&self) -> *mut bindings::device {
        core::ptr::from_ref::<device::Device>(&self.dev)
            .cast_mut()
            .cast()
    }

    /// # Safety
    ///
    /// `data` must be a reference to the action from `Arc::into_raw`, which is consumed, and the
    /// action must have been taken out of the list.
    unsafe extern "C" fn unbound(data: *mut c_void) {
        // SAFETY: By the safety requirements.
        let action = unsafe { Arc::from_raw(data.cast::<Action<T>>()) };
        action.release();
        // SAFETY: By the safety requirements.
        unsafe { Action::finish(action) };
    }
}

impl<T: Release> UntilUnbind<T> {
    /// Takes over a resource of `dev`, as [`AtUnbind::new`].
    pub(crate) fn new(
        dev: &device::Device<Bound>,
        resource: Arc<T>,
        pin: ModulePin,
    ) -> Result<Self> {
        Ok(Self(AtUnbind::new(dev, resource, pin)?))
    }

    /// Returns the resource.
    #[inline]
    pub(crate) fn resource(&self) -> &Arc<T> {
        self.0.resource()
    }
}

impl<T: Release> Action<T> {
    /// Releases the resource, or waits until another task has released it.
    ///
    /// A resource may own its own [`UntilUnbind`], which is then dropped while it is released.
    /// This returns false there.
    fn release(&self) -> bool {
        let me = core::ptr::from_ref(&**current!()).addr();
        if !self.is_begun.xchg(true, Full) {
            self.releaser.store(me, Relaxed);
            self.resource.release();
            self.releaser.store(0, Relaxed);
            self.released.complete_all();
        } else if self.releaser.load(Relaxed) == me {
            return false;
        } else {
            self.released.wait_for_completion();
        }
        true
    }

    /// Drops the pin of an action after all else.
    ///
    /// # Safety
    ///
    /// The action must have been taken out of the list.
    unsafe fn finish(this: Arc<Self>) {
        // SAFETY: By the type invariant, nothing else accesses the pin.
        let pin = unsafe { (*this.pin.get()).take() };
        drop(this);
        drop(pin);
    }
}

impl<T: Release> Drop for UntilUnbind<T> {
    fn drop(&mut self) {
        if check_may_sleep().is_ok() {
            self.0.release();
        }
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
