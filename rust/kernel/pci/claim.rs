// SPDX-License-Identifier: GPL-2.0

//! A claim on the interrupt vectors of a device, which has one set of vectors at a time.
//!
//! C header: [`include/linux/device/devres.h`](srctree/include/linux/device/devres.h)

use crate::{
    bindings,
    device::{
        Bound,
        DeviceContext, //
    },
    pci::Device,
    prelude::*,
    sync::aref::ARef, //
};
use core::ptr::NonNull;

/// The right to allocate vectors of a device, and to free them.
///
/// C keeps no record of who uses an interrupt line, and numbers its interrupts anew when a device
/// gets messages instead. So there is a record here, among the resources of the device, where C
/// looks it up and adds it in one step.
///
/// # Invariants
///
/// It is the only one for `dev` in the time that the driver is bound.
pub(crate) struct Claim {
    dev: ARef<Device>,
}

impl Claim {
    /// Claims the vectors of a device. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the vectors are claimed, or the device has messages nevertheless; `ENOMEM` if out
    /// of memory.
    pub(crate) fn new(dev: &Device<Bound>) -> Result<Self> {
        // SAFETY: This allocates a record with room for a byte.
        let record = unsafe {
            bindings::__devres_alloc_node(
                Some(release),
                1,
                bindings::GFP_KERNEL,
                bindings::NUMA_NO_NODE,
                c"pci_vectors".as_char_ptr(),
            )
        };
        if record.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: The device is valid, and `record` was just allocated. C frees it unless it is the
        // one that is returned.
        let found =
            unsafe { bindings::devres_get(device(dev), record, None, core::ptr::null_mut()) };
        if found != record {
            return Err(EBUSY);
        }
        // INVARIANT: There was no record.
        let this = Self { dev: dev.into() };
        // C refuses to allocate vectors then, but with a warning.
        //
        // SAFETY: The device is valid.
        if unsafe { bindings::pci_irq_type(this.raw()) } != bindings::PCI_IRQ_INTX {
            return Err(EBUSY);
        }
        Ok(this)
    }

    /// Returns a claim that was forgotten.
    ///
    /// # Safety
    ///
    /// There is one for this device. It is not returned again.
    // Not used in a module, which cannot patch the kernel crate.
    #[allow(dead_code)]
    pub(crate) unsafe fn forgotten(dev: &Device<Bound>) -> Self {
        // INVARIANT: By the safety requirement, it is the only one.
        //
        // SAFETY: The claim that was forgotten had a reference, which is passed on.
        let dev = unsafe { ARef::from_raw(NonNull::from(&**dev)) };
        Self { dev }
    }

    /// Returns C's pointer to the device.
    pub(super) fn raw(&self) -> *mut bindings::pci_dev {
        raw(&*self.dev)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // If the driver was unbound, there is no record any more.
        //
        // SAFETY: The device is valid. By the type invariant, the record is that of this claim.
        unsafe {
            bindings::devres_destroy(
                device(&*self.dev),
                Some(release),
                None,
                core::ptr::null_mut(),
            )
        };
    }
}

/// Marks a record as one of a claim. There is nothing to release.
extern "C" fn release(_dev: *mut bindings::device, _record: *mut c_void) {}

fn device<Ctx: DeviceContext>(dev: &Device<Ctx>) -> *mut bindings::device {
    // SAFETY: The device is valid, and embeds the generic one.
    unsafe { &raw mut (*raw(dev)).dev }
}

/// Returns C's pointer to a device.
pub(super) fn raw<Ctx: DeviceContext>(dev: &Device<Ctx>) -> *mut bindings::pci_dev {
    // The type is a transparent wrapper.
    core::ptr::from_ref(dev).cast_mut().cast()
}
