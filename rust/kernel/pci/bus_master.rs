// SPDX-License-Identifier: GPL-2.0

//! The permission of a device to access memory by itself.
//!
//! C header: [`include/linux/pci.h`](srctree/include/linux/pci.h)

use crate::{
    bindings,
    device::{
        Bound,
        Core, //
    },
    module_pin::ModulePin,
    new_mutex,
    pci::Device,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    },
    until_unbind::{
        Release,
        UntilUnbind, //
    },
};

/// Takes the permission to access memory, and to send messages as interrupts, from a device.
///
/// A device that complies with PCI writes nothing more when this returns. A driver does this before
/// it frees memory that the device knows of. `Device::set_master` gives the permission. C holds the
/// lock of the device when it changes its record of that, as the callbacks of a driver do.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::Core,
///     dma::Coherent,
///     pci::{self, bus_master},
/// };
///
/// fn stop(dev: &pci::Device<Core<'_>>, ring: Coherent<[u64]>) {
///     bus_master::clear(dev);
///     drop(ring);
/// }
/// ```
pub fn clear(dev: &Device<Core<'_>>) {
    let raw = core::ptr::from_ref(dev).cast_mut();
    // SAFETY: The device is valid, and the type a transparent wrapper. Its lock is held.
    unsafe { bindings::pci_clear_master(raw.cast()) };
}

/// Takes the permission from a device where its lock is not held.
///
/// A handler of timeouts needs this: the task that holds the lock may be waiting for the request
/// that timed out. The register that has the permission also enables the interrupt line, which C
/// changes when vectors are allocated or freed. If that happens at the same time, the device may
/// keep the permission. So a driver that frees memory calls [`clear`] before.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::Bound,
///     pci::{self, bus_master::BusMaster},
/// };
///
/// fn stop(dev: &pci::Device<Bound>) -> Result {
///     let master = BusMaster::new(dev)?;
///     master.clear();
///     Ok(())
/// }
/// ```
pub struct BusMaster(UntilUnbind<Permission>);

/// # Invariants
///
/// While `is_bound` contains true, the driver is bound.
#[pin_data]
struct Permission {
    dev: ARef<Device>,
    #[pin]
    is_bound: Mutex<bool>,
}

impl Release for Permission {
    fn release(&self) {
        *self.is_bound.lock() = false;
    }
}

impl BusMaster {
    /// Makes a handle of the permission. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if out of memory.
    pub fn new(dev: &Device<Bound>) -> Result<Self> {
        let permission = Arc::pin_init(
            // INVARIANT: `UntilUnbind` calls `release` before the driver is unbound.
            pin_init!(Permission {
                dev: dev.into(),
                is_bound <- new_mutex!(true),
            }),
            GFP_KERNEL,
        )?;
        let pin = ModulePin::of_this_code()?;
        Ok(Self(UntilUnbind::new(dev.as_ref(), permission, pin)?))
    }

    /// Takes the permission from the device. May sleep. Does nothing once the driver was unbound.
    pub fn clear(&self) {
        let permission = self.0.resource();
        let is_bound = permission.is_bound.lock();
        if *is_bound {
            let dev: &Device = &permission.dev;
            let raw = core::ptr::from_ref(dev).cast_mut();
            // SAFETY: The device is valid, and the type a transparent wrapper. By the invariants of
            // `Permission`, it is that of this driver. The register is read and written, each under
            // C's own lock; what C has recorded of the device does not change.
            unsafe { bindings::pci_device_clear_master(raw.cast()) };
        }
    }
}
