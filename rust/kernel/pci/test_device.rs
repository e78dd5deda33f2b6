// SPDX-License-Identifier: GPL-2.0

//! Devices of QEMU that tests may take, as no driver uses them.
//!
//! `qemu-system-x86_64 -device pci-testdev -device edu` has both.

use super::Device;
use crate::{
    bindings,
    device::{
        self,
        Bound,
        Core, //
    },
    prelude::*, //
};

/// The vendors and devices.
const DEVICES: [(c_uint, c_uint); 2] = [
    // `pci-testdev`: a BAR of memory, one of I/O ports.
    (0x1b36, 0x0005),
    // `edu`: an interrupt line, a BAR of memory.
    (0x1234, 0x11e8),
];

/// Calls `f` with each device that has no driver, as if by a driver of ours that is bound to it.
pub(crate) fn each_device(mut f: impl FnMut(&Device<Core<'_>>)) {
    for (vendor, device) in DEVICES {
        let mut raw = core::ptr::null_mut();
        loop {
            // SAFETY: This takes over the reference to the device before, and returns one to the
            // next.
            raw = unsafe { bindings::pci_get_device(vendor, device, raw) };
            if raw.is_null() {
                break;
            }
            // A test that fails does not unlock. The next one must not wait for it.
            //
            // SAFETY: The device is valid.
            assert!(unsafe { bindings::pci_device_trylock(raw) });
            // SAFETY: As above, and its driver does not change while it is locked.
            if unsafe { (*raw).dev.driver }.is_null() {
                // SAFETY: The device is valid and locked. As it has no driver, nothing else uses
                // it, and what the tests do to it is undone by `until_unbind`.
                f(unsafe { &*raw.cast() });
            }
            // SAFETY: It was locked above.
            unsafe { bindings::pci_device_unlock(raw) };
        }
    }
}

/// Marks the test as skipped, if `tested` is zero: there was no device for it.
pub(crate) fn skip_unless(tested: usize) {
    const WHY: &[u8] = b"needs pci-testdev and edu of QEMU";

    if tested > 0 {
        return;
    }
    // SAFETY: This runs in a test.
    let test = unsafe { bindings::kunit_get_current_test() };
    // SAFETY: As above: it is valid, and other tasks do not access it.
    let test = unsafe { &mut *test };
    test.status = bindings::kunit_status_KUNIT_SKIPPED;
    for (to, from) in test.status_comment.iter_mut().zip(WHY) {
        *to = *from as c_char;
    }
}

/// Calls `f`, then releases the resources that a device has got since, as if the driver was
/// unbound.
pub(crate) fn until_unbind<R>(dev: &Device<Core<'_>>, f: impl FnOnce() -> R) -> R {
    let dev: &device::Device<Bound> = dev.as_ref();
    let raw = core::ptr::from_ref(dev).cast_mut().cast();
    // SAFETY: The device is valid. C chooses the name of the group.
    let group =
        unsafe { bindings::devres_open_group(raw, core::ptr::null_mut(), bindings::GFP_KERNEL) };
    assert!(!group.is_null());
    let result = f();
    // SAFETY: The group was just opened.
    unsafe { bindings::devres_release_group(raw, group) };
    result
}
