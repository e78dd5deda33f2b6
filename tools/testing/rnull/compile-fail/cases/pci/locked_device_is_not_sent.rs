// SPDX-License-Identifier: GPL-2.0

//! A device whose lock is held is not shared with tasks that do not hold it.

use kernel::{
    device::Core,
    pci::Device, //
};

fn share<T: Sync>(_: &T) {}

pub fn send(dev: &Device<Core<'_>>) {
    #[cfg(bad)]
    share(dev); //~ ERROR E0277
    #[cfg(not(bad))]
    share::<Device>(dev);
}
