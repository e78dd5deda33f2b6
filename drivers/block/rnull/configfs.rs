// SPDX-License-Identifier: GPL-2.0

//! The directory in the root of configfs, where mkdir makes a device.

mod attributes;

use crate::{
    device::{
        Defaults,
        Device, //
    },
    names,
    registry::Registry, //
};
use kernel::{
    configfs::{
        Attribute,
        DefaultGroups,
        Directory,
        NoChild,
        Page,
        Subsystem, //
    },
    prelude::*,
    sync::Arc, //
};

/// The directory that holds the devices.
pub(crate) struct NullbSubsystem {
    registry: Arc<Registry>,
    defaults: Defaults,
}

/// Puts the directory in the root of configfs.
pub(crate) fn register_subsystem(
    owner: &'static ThisModule,
    registry: Arc<Registry>,
    defaults: Defaults,
) -> Result<Subsystem<NullbSubsystem>> {
    let tree = NullbSubsystem { registry, defaults };
    Subsystem::new(names::TREE, owner, Ok(tree))
}

impl Directory for NullbSubsystem {
    type Child = Device;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::ro(c"features", NullbSubsystem::features)];

    /// Makes a device that is off; its directory will name its disk.
    fn make_group(&self, name: &CStr) -> impl PinInit<Device, Error> {
        Device::new(self.registry.clone(), Some(name), self.defaults)
    }

    /// Takes the disk off the system before rmdir returns; the data goes with the device.
    fn drop_item(&self, device: &Device) {
        device.power_off();
    }
}

impl NullbSubsystem {
    /// Lists what a device can be told, for programs that must know before they try.
    fn features(&self, page: &mut Page<'_>) -> Result {
        for (position, attribute) in attributes::ALL.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            write!(page, "{separator}{}", attribute.name().to_str()?)?;
        }
        writeln!(page)
    }
}

impl Directory for Device {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = attributes::ALL;

    fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
        self.faults().add_to(groups)
    }
}
