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
    while_off!(badblocks_once: bool),
    while_off!(badblocks_partial_io: bool),
    while_off!(blocking: bool),
    while_off!(blocksize: u32),
    while_off!(cache_size: usize),
    while_off!(completion_nsec: usize),
    while_off!(discard: bool),
    while_off!(fua: bool),
    while_off!(home_node: u32),
    while_off!(hw_queue_depth: u32),
    while_off!(index: u32),
    while_off!(irqmode: u32),
    while_off!(max_sectors: u32),
    while_off!(mbps: u32),
    while_off!(memory_backed: bool),
    while_off!(no_sched: bool),
    always!(poll_queues: u32, Device::poll_queues, Device::set_poll_queues),
    always!(power: bool, Device::is_on, Device::set_power),
    while_off!(queue_mode: u32),
    while_off!(rotational: bool),
    while_off!(shared_tag_bitmap: bool),
    while_off!(shared_tags: bool),
    while_off!(size: usize),
    always!(submit_queues: u32, Device::submit_queues, Device::set_submit_queues),
    while_off!(use_per_node_hctx: bool),
    while_off!(virt_boundary: bool),
];

/// An attribute that is a setting, of the same name and type, written only while the power is off.
macro_rules! while_off {
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
use while_off;

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
