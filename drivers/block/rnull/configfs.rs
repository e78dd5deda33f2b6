// SPDX-License-Identifier: GPL-2.0

//! The configfs subsystem, in which mkdir makes a device.

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
        Group,
        NoChild,
        Page,
        Subsystem, //
    },
    prelude::*,
    sync::Arc, //
};

/// The subsystem: the directory of all devices.
pub(crate) struct NullbSubsystem {
    registry: Arc<Registry>,
    defaults: Defaults,
}

/// Registers the subsystem.
pub(crate) fn register_subsystem(
    owner: &'static ThisModule,
    registry: Arc<Registry>,
    defaults: Defaults,
) -> Result<Subsystem<NullbSubsystem>> {
    let data = NullbSubsystem { registry, defaults };
    Subsystem::new(names::SUBSYSTEM, owner, Ok(data))
}

impl Group for NullbSubsystem {
    type Child = Device;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::ro(c"features", NullbSubsystem::features)];

    /// Makes a device that is off. The disk will have the name of the directory.
    fn make_group(&self, name: &CStr) -> impl PinInit<Device, Error> {
        Device::new(self.registry.clone(), Some(name), self.defaults)
    }

    /// Removes the disk before rmdir returns. The data is freed with the device.
    fn drop_item(&self, device: &Device) {
        device.power_off();
    }
}

impl NullbSubsystem {
    /// Lists the attributes of a device, so that programs can check what is supported.
    fn features(&self, page: &mut Page<'_>) -> Result {
        for (position, attribute) in attributes::ALL.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            write!(page, "{separator}{}", attribute.name().to_str()?)?;
        }
        writeln!(page)
    }
}

impl Group for Device {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = attributes::ALL;

    fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
        self.faults().add_to(groups)
    }
}
