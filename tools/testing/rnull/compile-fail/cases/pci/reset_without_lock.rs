// SPDX-License-Identifier: GPL-2.0

//! A function is reset only where the lock of the device is held.

use kernel::{
    device::{
        Bound,
        Core, //
    },
    pci::{
        adapter::function_reset,
        Device, //
    },
    prelude::*, //
};

#[cfg(bad)]
pub fn reset(dev: &Device<Bound>) -> Result {
    function_reset::flr(dev) //~ ERROR E0308: mismatched types
}

#[cfg(not(bad))]
pub fn reset(dev: &Device<Core<'_>>) -> Result {
    function_reset::flr(dev)
}
