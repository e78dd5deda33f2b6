// SPDX-License-Identifier: GPL-2.0

//! The permission of a device to access memory by itself.
//!
//! C header: [`include/linux/pci.h`](srctree/include/linux/pci.h)

use crate::{
    bindings,
    device::Core,
    pci::Device, //
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
