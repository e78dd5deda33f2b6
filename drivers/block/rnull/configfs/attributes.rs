// SPDX-License-Identifier: GPL-2.0

//! The attributes of a device.

mod bad_blocks;

use crate::device::Device;
use kernel::{
    c_str,
    configfs::{
        Attribute,
        Page,
        Text, //
    },
    prelude::*, //
};

/// All attributes, sorted by name.
///
/// Text is parsed first, so invalid text fails with the same error whether the power is on or off.
pub(super) const ALL: &[Attribute<Device>] = &[
    Attribute::rw(c"badblocks", bad_blocks::show, bad_blocks::store),
    config_attr!(badblocks_once: bool),
    config_attr!(badblocks_partial_io: bool),
    config_attr!(blocking: bool),
    config_attr!(blocksize: u32),
    config_attr!(cache_size: usize),
    config_attr!(completion_nsec: usize),
    config_attr!(discard: bool),
    config_attr!(fua: bool),
    config_attr!(home_node: u32),
    config_attr!(hw_queue_depth: u32),
    config_attr!(index: u32),
    config_attr!(irqmode: u32),
    config_attr!(max_sectors: u32),
    config_attr!(mbps: u32),
    config_attr!(memory_backed: bool),
    config_attr!(no_sched: bool),
    live_attr!(poll_queues: u32, Device::poll_queues, Device::set_poll_queues),
    live_attr!(power: bool, Device::is_on, Device::set_power),
    config_attr!(queue_mode: u32),
    config_attr!(rotational: bool),
    config_attr!(shared_tag_bitmap: bool),
    config_attr!(shared_tags: bool),
    config_attr!(size: usize),
    live_attr!(submit_queues: u32, Device::submit_queues, Device::set_submit_queues),
    config_attr!(use_per_node_hctx: bool),
    config_attr!(virt_boundary: bool),
];

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
use config_attr;

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
use live_attr;

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
