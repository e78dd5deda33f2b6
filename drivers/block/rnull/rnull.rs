// SPDX-License-Identifier: GPL-2.0

//! A null block driver without `unsafe`.
//!
//! Its disks end each request at once, in softirq context or after a delay, and forget the data
//! or keep it in memory. The parameters and attributes are those of C's `null_blk`.
//!
//! The modules stand in reading order, and import only what stands below them. Two ways lead
//! down: a user's settings go from `params` or `configfs` to a `device` and become a `disk`; a
//! request enters at `queue` and goes on to `transfer`, `backing` and `completion`.

#![forbid(unsafe_code)]

// From a user's settings to a device.
mod configfs;

mod params;

mod device;

// From a device to a disk.
mod disk;

mod registry;

mod tags;

// From a request to its data, then to its end.
mod queue;

mod conditions;

mod transfer;

mod backing;

mod completion;

mod poll_list;

mod pdu;

// What all of it is measured by.
mod system_limits;

mod config;

mod names;

use configfs::NullbSubsystem;
use device::{
    Defaults,
    Device, //
};
use kernel::{
    configfs::Subsystem,
    prelude::*,
    sync::Arc, //
};
use registry::Registry;

names::module! {
    type: Rnull,
    authors: ["rnull contributors"],
    description: "Null block driver in Rust",
    license: "GPL",
}

/// What lives from load to unload.
struct Rnull {
    /// Comes first, so that nobody makes a device while the others go.
    _tree: Subsystem<NullbSubsystem>,
    /// The devices that the parameters asked for, all of them on.
    _devices: KVec<Pin<KBox<Device>>>,
}

impl kernel::Module for Rnull {
    fn init(module: &'static ThisModule) -> Result<Self> {
        params::settle()?;
        let defaults = params::defaults()?;
        let registry = Arc::pin_init(Registry::new(defaults.settings), GFP_KERNEL)?;
        let devices = add_devices(&registry, defaults)?;
        // Last, since devices could be made in it as soon as it is there.
        let tree = configfs::register_subsystem(module, registry, defaults)?;
        pr_info!("module loaded\n");
        Ok(Self {
            _tree: tree,
            _devices: devices,
        })
    }
}

/// Makes the devices that the parameters ask for; after a failure none is left.
fn add_devices(registry: &Arc<Registry>, defaults: Defaults) -> Result<KVec<Pin<KBox<Device>>>> {
    let mut devices = KVec::new();
    for _ in 0..params::NR_DEVICES.get() {
        let device = Device::new(registry.clone(), None, defaults);
        let device = KBox::pin_init(device, GFP_KERNEL)?;
        device.power_on()?;
        devices.push(device, GFP_KERNEL)?;
    }
    Ok(devices)
}
