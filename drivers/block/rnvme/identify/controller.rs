// SPDX-License-Identifier: GPL-2.0

//! Identify Controller.

use super::{
    answer::{
        byte,
        bytes,
        le16,
        le32,
        Answer, //
    },
    text::Text, //
};
use core::fmt;

/// The most bytes that this driver moves with one command.
pub(crate) const MAX_TRANSFER: u32 = 8 << 20;

/// The most namespaces that this driver looks at.
pub(crate) const MAX_NAMESPACES: u32 = 1024;

/// What a controller says about itself, as far as this driver uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    /// The vendor of the PCI device.
    pub(crate) vendor: u16,
    /// The vendor of the subsystem.
    pub(crate) subsystem_vendor: u16,
    /// The serial number.
    pub(crate) serial: Text<20>,
    /// The model number.
    pub(crate) model: Text<40>,
    /// The revision of the firmware.
    pub(crate) firmware: Text<8>,
    /// The number of the controller in its subsystem.
    pub(crate) id: u16,
    /// What it is for: 1 for I/O, 0 if the controller does not say.
    pub(crate) kind: u8,
    /// The name of the subsystem, empty if the controller does not say.
    nqn: Text<256>,
    /// The most bytes that a command may move: a power of two, 8 KiB to [`MAX_TRANSFER`].
    pub(crate) max_transfer: u32,
    /// The most namespaces to look at: 1 to [`MAX_NAMESPACES`].
    pub(crate) max_namespaces: u32,
    /// The highest number that a namespace may have, 0 if there are none.
    pub(crate) highest_nsid: u32,
    /// Whether there is a volatile write cache.
    pub(crate) has_write_cache: bool,
    /// Whether there is a log of the effects of commands.
    pub(crate) has_effects_log: bool,
    /// Which optional commands there are.
    pub(crate) optional: OptionalCommands,
    /// Whether commands may have a scatter-gather list.
    pub(crate) has_sgl: bool,
    /// How many commands may be aborted at once.
    pub(crate) abort_limit: u32,
    /// Which optional events there are: the field OAES.
    pub(crate) optional_events: u32,
    /// How long to wait before a retry, for each value of the status field CRD but 0, in
    /// milliseconds.
    pub(crate) retry_delays: [u32; 3],
    /// How long a shutdown may take, in milliseconds; 0 if the controller does not say.
    pub(crate) shutdown_timeout: u32,
}

/// Which optional commands a controller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionalCommands {
    /// Dataset Management, which discards.
    pub(crate) dataset_management: bool,
    /// Write Zeroes.
    pub(crate) write_zeroes: bool,
}

impl Controller {
    /// Parses the answer; [`None`] if the controller needs queue entries of other sizes than
    /// `sq_shift` and `cq_shift` as powers of two.
    pub(crate) fn parse(data: &Answer, sq_shift: u8, cq_shift: u8) -> Option<Self> {
        let fits = |sizes: u8, shift: u8| (sizes & 0xf..=sizes >> 4).contains(&shift);
        if !fits(byte::<512>(data), sq_shift) || !fits(byte::<513>(data), cq_shift) {
            return None;
        }
        let highest_nsid = le32::<516>(data);
        // Not said by controllers that are older than the field: then any number of them.
        let most = match le32::<540>(data) {
            0 => highest_nsid,
            most => most,
        };
        let optional = le16::<520>(data);
        let delay = |units: u16| u32::from(units) * 100;
        Some(Self {
            vendor: le16::<0>(data),
            subsystem_vendor: le16::<2>(data),
            serial: Text::new(bytes::<4, 20>(data)),
            model: Text::new(bytes::<24, 40>(data)),
            firmware: Text::new(bytes::<64, 8>(data)),
            id: le16::<78>(data),
            kind: byte::<111>(data),
            nqn: Text::new(bytes::<768, 256>(data)),
            max_transfer: max_transfer(byte::<77>(data)),
            max_namespaces: most.clamp(1, MAX_NAMESPACES),
            highest_nsid,
            has_write_cache: byte::<525>(data) & 1 != 0,
            has_effects_log: byte::<261>(data) & 1 << 1 != 0,
            optional: OptionalCommands {
                dataset_management: optional & 1 << 2 != 0,
                write_zeroes: optional & 1 << 3 != 0,
            },
            // With addresses and lengths of any alignment, or of 4 bytes, as all of a disk are.
            has_sgl: matches!(le32::<536>(data) & 0b11, 0b01 | 0b10),
            abort_limit: u32::from(byte::<258>(data)) + 1,
            optional_events: le32::<92>(data),
            retry_delays: [
                delay(le16::<128>(data)),
                delay(le16::<130>(data)),
                delay(le16::<132>(data)),
            ],
            shutdown_timeout: le32::<88>(data).div_ceil(1000),
        })
    }

    /// Ignores what the controller says the name of the subsystem is.
    pub(crate) fn forget_subsystem_name(&mut self) {
        self.nqn = Text::new([0; 256]);
    }

    /// Returns the name of the subsystem, as a host makes it if the controller does not say.
    pub(crate) fn subsystem_name(&self) -> impl fmt::Display + '_ {
        SubsystemName(self)
    }
}

struct SubsystemName<'a>(&'a Controller);

impl fmt::Display for SubsystemName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = self.0;
        let said = it.nqn.as_str();
        if !said.is_empty() && said.len() < 224 {
            return f.write_str(said);
        }
        // The texts are padded with spaces to the length of their fields.
        write!(
            f,
            "nqn.2014.08.org.nvmexpress:{:04x}{:04x}{:<20}{:<40}",
            it.vendor,
            it.subsystem_vendor,
            it.serial.as_str(),
            it.model.as_str()
        )
    }
}

/// Returns the bytes that MDTS stands for: a power of two of pages, or no limit.
fn max_transfer(mdts: u8) -> u32 {
    match mdts {
        1..=10 => 4096 << mdts,
        _ => MAX_TRANSFER,
    }
}
