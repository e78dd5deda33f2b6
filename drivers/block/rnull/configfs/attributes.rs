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

/// All attributes by name.
///
/// Text is parsed before anything else is looked at, so bad text fails in the same way whether
/// the power is on or off.
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
    always!(poll_queues: u32, Device::poll_queues, Device::set_poll_queues),
    always!(power: bool, Device::is_on, Device::set_power),
    config_attr!(queue_mode: u32),
    config_attr!(rotational: bool),
    config_attr!(shared_tag_bitmap: bool),
    config_attr!(shared_tags: bool),
    config_attr!(size: usize),
    always!(submit_queues: u32, Device::submit_queues, Device::set_submit_queues),
    config_attr!(use_per_node_hctx: bool),
    config_attr!(virt_boundary: bool),
];

/// An attribute that is a setting, of the same name and type, written only while the power is off.
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

/// An attribute that is written at any time, through functions that see to it.
macro_rules! always {
    ($name:ident: $type:ty, $get:path, $set:path) => {
        Attribute::rw(
            c_str!(stringify!($name)),
            |device: &Device, page| $get(device).show(page),
            |device, text| $set(device, <$type>::parse(text)?),
        )
    };
}
use always;

/// A type of attribute, with C's way of reading and writing it.
trait Value: Sized {
    /// Reads all of `text`.
    fn parse(text: &Text) -> Result<Self>;

    /// Writes the value with a newline.
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
