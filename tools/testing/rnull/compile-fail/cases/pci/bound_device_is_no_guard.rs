// SPDX-License-Identifier: GPL-2.0

//! That a device is bound does not give access to registers: they may be those of an earlier
//! binding.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    pci::bar::Doorbell,
    prelude::*,
    sync::rcu, //
};

pub fn ring(doorbell: &Doorbell, dev: &Device<Bound>) -> Result {
    #[cfg(bad)]
    let rung = doorbell.ring(dev, 1); //~ ERROR E0308: mismatched types
    #[cfg(not(bad))]
    let rung = doorbell.ring(&rcu::read_lock(), 1);
    let _ = dev;
    rung
}
