// SPDX-License-Identifier: GPL-2.0

//! A null block driver without `unsafe`.
//!
//! Requests complete at once, in softirq context or after a delay. The data is dropped or kept in
//! memory. The parameters and attributes are those of C's `null_blk`.
//!
//! The modules are listed in reading order, and each imports only modules below it. There are two
//! paths through them. Settings go from `params` or `configfs` to a `device`, which makes a `disk`
//! of them. A request enters at `queue`, and goes on to `transfer`, `backing` and `store`, then to
//! `completion`. A bio enters at `bios`, and goes on to `backing`.

#![forbid(unsafe_code)]

// From the user's settings to a device.
mod configfs;

mod params;

mod device;

// From a device to a disk.
mod disk;

mod registry;

mod tags;

mod system_limits;

// From a request to its data, then to its completion.
mod queue;

mod bios;

mod zoned;

mod slow_path;

mod transfer;

mod backing;

mod cache;

mod store;

mod pages;

mod sectors;

mod range;

mod completion;

mod poll_list;

mod pdu;

mod trace;

// Settings and limits.
mod config;

mod zone_layout;

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

/// The module.
struct Rnull {
    /// Dropped first, so that no device is made while the others are removed.
    _subsystem: Subsystem<NullbSubsystem>,
    /// The devices made for `nr_devices`, which are on.
    _devices: KVec<Pin<KBox<Device>>>,
}

impl kernel::Module for Rnull {
    fn init(module: &'static ThisModule) -> Result<Self> {
        params::sanitize()?;
        let defaults = params::defaults()?;
        let registry = Arc::pin_init(Registry::new(defaults.settings), GFP_KERNEL)?;
        let devices = add_devices(&registry, defaults)?;
        // Last: as soon as it is registered, users can make devices.
        let subsystem = configfs::register_subsystem(module, registry, defaults)?;
        pr_info!("module loaded\n");
        Ok(Self {
            _subsystem: subsystem,
            _devices: devices,
        })
    }
}

/// Makes `nr_devices` devices. After an error none is left.
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
