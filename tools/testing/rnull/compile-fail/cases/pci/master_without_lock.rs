// SPDX-License-Identifier: GPL-2.0

//! The permission to access memory is taken only where the lock of the device is held.

use kernel::{
    device::{
        Bound,
        Core, //
    },
    pci::{
        bus_master,
        Device, //
    },
};

#[cfg(bad)]
pub fn clear(dev: &Device<Bound>) {
    bus_master::clear(dev) //~ ERROR E0308: mismatched types
}

#[cfg(not(bad))]
pub fn clear(dev: &Device<Core<'_>>) {
    bus_master::clear(dev)
}
