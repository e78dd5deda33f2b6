// SPDX-License-Identifier: GPL-2.0

//! Resets of a function that its driver asks for.
//!
//! C header: [`include/linux/pci.h`](srctree/include/linux/pci.h)

use crate::{
    bindings,
    device::Core,
    error::to_result,
    pci::{
        bus_master,
        claim::{
            raw,
            Claim, //
        },
        Device, //
    },
    prelude::*, //
};

/// Resets a function by FLR, the reset that PCI Express has for a single function.
///
/// The function forgets all but its address and how it was configured, which is restored. It may
/// not access memory afterwards: a driver calls `Device::set_master` when it is set up again. Until
/// this returns, reads of its registers may return all ones, and writes may be lost.
///
/// C's own resets tell the driver before and after. This does not: it is for the driver itself,
/// also in `reset_done`. May sleep, for a bit more than a minute if the function does not come
/// back.
///
/// # Errors
///
/// `ENOTTY` if the function has no FLR, cannot be accessed, or has not come back; `EBUSY` while
/// interrupt vectors are allocated, as a driver would not notice that interrupts were lost;
/// `ENOMEM` if out of memory; another one if C could not prepare the reset.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::Core,
///     pci::{self, adapter::function_reset},
/// };
///
/// /// Stops a device, at any price.
/// fn stop(dev: &pci::Device<Core<'_>>, stops: impl Fn() -> Result) -> Result {
///     stops().or_else(|_| {
///         function_reset::flr(dev)?;
///         stops()
///     })
/// }
/// ```
pub fn flr(dev: &Device<Core<'_>>) -> Result {
    // C looks at the record of messages when it restores them, so none may be allocated meanwhile.
    let _claim = Claim::new(dev)?;
    let raw = raw(dev);
    // SAFETY: The device is valid. This only asks whether there is an FLR.
    to_result(unsafe { bindings::pcie_reset_flr(raw, true) })?;
    // Before the configuration is saved: a device that `BusMaster` has stopped stays so, and what
    // it was writing is written before the reset, which waits for that.
    bus_master::clear(dev);
    // C resets a function without this, too, but then the wrong configuration would be restored.
    //
    // SAFETY: The device is valid. Its lock is held, so nothing else saves or restores its
    // configuration.
    to_result(unsafe { bindings::pci_save_state(raw) })?;
    // The lock for accesses of users to the configuration is not taken: in `reset_done` C has it.
    //
    // SAFETY: The device is valid. Its lock is held, so its driver remains bound, and nothing else
    // resets it. Who accesses its registers meanwhile finds what a device has that was pulled out.
    let result = to_result(unsafe { bindings::pcie_reset_flr(raw, false) });
    // Also if it was not reset, as C does it: this writes only what has changed.
    //
    // SAFETY: The configuration was saved above. By the claim there are no messages to restore.
    unsafe { bindings::pci_restore_state(raw) };
    result
}
