// SPDX-License-Identifier: GPL-2.0

//! The attributes of a device.

mod bad_blocks;

use crate::{
    config::settings,
    device::Device,
    zoned::Condition, //
};
use kernel::{
    c_str,
    configfs::{
        Attribute,
        Page,
        Text, //
    },
    prelude::*, //
};

/// Defines [`ALL`] by the table of settings.
///
/// Text is parsed first, so invalid text fails with the same error whether the power is on or off.
macro_rules! attributes {
    ($($name:ident
        $(: $type:ty $(, $param:ident: $param_type:ident $(($check:ident))? = $default:expr,
            $text:literal $(, $convert:ident)?)?)?;)*
    ) => {
        /// All attributes, sorted by name.
        pub(super) const ALL: &[Attribute<Device>] = &[$(attribute!($name $($type)?)),*];
    };
}

macro_rules! attribute {
    (badblocks) => {
        Attribute::rw(c"badblocks", bad_blocks::show, bad_blocks::store)
    };
    (power) => {
        live_attr!(power: bool, Device::is_on, Device::set_power)
    };
    (poll_queues $type:ty) => {
        live_attr!(poll_queues: $type, Device::poll_queues, Device::set_poll_queues)
    };
    (submit_queues $type:ty) => {
        live_attr!(submit_queues: $type, Device::submit_queues, Device::set_submit_queues)
    };
    (zone_offline) => {
        zone_attr!(zone_offline, Condition::Offline)
    };
    (zone_readonly) => {
        zone_attr!(zone_readonly, Condition::ReadOnly)
    };
    ($name:ident $type:ty) => {
        config_attr!($name: $type)
    };
}

/// An attribute for the setting of the same name and type. It is writable while the power is off.
macro_rules! config_attr {
    ($name:ident: $type:ty) => {
        Attribute::rw(
            c_str!(stringify!($name)),
            |device: &Device, page| device.settings().$name.show(page),
            |device, text| {
                let value = <$type>::parse(text)?;
                device.change(|settings| settings.$name = value)
            },
        )
    };
}

/// An attribute that is writable at any time, with functions to get and set the value.
macro_rules! live_attr {
    ($name:ident: $type:ty, $get:path, $set:path) => {
        Attribute::rw(
            c_str!(stringify!($name)),
            |device: &Device, page| $get(device).show(page),
            |device, text| $set(device, <$type>::parse(text)?),
        )
    };
}

/// An attribute that takes a sector, whose zone is changed. It is writable while the power is on.
macro_rules! zone_attr {
    ($name:ident, $condition:path) => {
        Attribute::wo(c_str!(stringify!($name)), |device: &Device, text| {
            device.toggle_zone(|| text.kstrtoull(0), $condition)
        })
    };
}

settings!(attributes);

/// The value of an attribute, parsed and formatted as in C.
trait Value: Sized {
    /// Parses `text`, all of which has to be the value.
    fn parse(text: &Text) -> Result<Self>;

    /// Writes the value and a newline.
    fn show(self, page: &mut Page<'_>) -> Result;
}

impl Value for bool {
    fn parse(text: &Text) -> Result<Self> {
        text.kstrtobool()
    }

    fn show(self, page: &mut Page<'_>) -> Result {
        u32::from(self).show(page)
    }
}

impl Value for u32 {
    fn parse(text: &Text) -> Result<Self> {
        text.kstrtouint(0)
    }

    fn show(self, page: &mut Page<'_>) -> Result {
        writeln!(page, "{self}")
    }
}

impl Value for usize {
    fn parse(text: &Text) -> Result<Self> {
        text.kstrtoul(0)
    }

    fn show(self, page: &mut Page<'_>) -> Result {
        writeln!(page, "{self}")
    }
}
