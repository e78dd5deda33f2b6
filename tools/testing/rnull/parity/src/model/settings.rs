// SPDX-License-Identifier: GPL-2.0

//! The attributes of a device: how text becomes a value, what power-on makes of the values.

use super::Machine;
use std::collections::BTreeMap;

/// How the text of an attribute is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    /// `unsigned int`.
    Uint,
    /// `unsigned long`.
    Ulong,
}

/// The attributes that are plain settings: name, kind, value of a new device.
pub const PLAIN: [(&str, Kind, u64); 24] = [
    ("badblocks_once", Kind::Bool, 0),
    ("badblocks_partial_io", Kind::Bool, 0),
    ("blocking", Kind::Bool, 0),
    ("blocksize", Kind::Uint, 512),
    ("cache_size", Kind::Ulong, 0),
    ("completion_nsec", Kind::Ulong, 10_000),
    ("discard", Kind::Bool, 0),
    ("fua", Kind::Bool, 1),
    ("home_node", Kind::Uint, u32::MAX as u64),
    ("hw_queue_depth", Kind::Uint, 64),
    ("irqmode", Kind::Uint, 1),
    ("max_sectors", Kind::Uint, 0),
    ("mbps", Kind::Uint, 0),
    ("memory_backed", Kind::Bool, 0),
    ("no_sched", Kind::Bool, 0),
    ("poll_queues", Kind::Uint, 1),
    ("queue_mode", Kind::Uint, 2),
    ("rotational", Kind::Bool, 0),
    ("shared_tag_bitmap", Kind::Bool, 0),
    ("shared_tags", Kind::Bool, 0),
    ("size", Kind::Ulong, 256_000),
    ("submit_queues", Kind::Uint, 1),
    ("use_per_node_hctx", Kind::Bool, 0),
    ("virt_boundary", Kind::Bool, 0),
];

/// Reads a text as the kernel does: `kstrtobool`, or `kstrtoull` with any base.
pub fn parse(kind: Kind, text: &str) -> Result<u64, &'static str> {
    match kind {
        Kind::Bool => boolean(text).ok_or("EINVAL"),
        Kind::Uint => number(text).and_then(|n| {
            if n > u32::MAX.into() {
                Err("ERANGE")
            } else {
                Ok(n)
            }
        }),
        Kind::Ulong => number(text),
    }
}

fn boolean(text: &str) -> Option<u64> {
    let mut letters = text.chars().map(|c| c.to_ascii_lowercase());
    match letters.next()? {
        'y' | 't' | '1' => Some(1),
        'n' | 'f' | '0' => Some(0),
        'o' => match letters.next()? {
            'n' => Some(1),
            'f' => Some(0),
            _ => None,
        },
        _ => None,
    }
}

/// Reads a number with its prefix, a plus before it, at most one newline after it.
pub fn number(text: &str) -> Result<u64, &'static str> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, base) = match hex {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => (digits, 16),
        _ if text.starts_with('0') => (text, 8),
        _ => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err("EINVAL");
    }
    u64::from_str_radix(digits, base).map_err(|_| "ERANGE")
}

/// The values of the plain attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, u64>);

impl Default for Settings {
    fn default() -> Self {
        Self(
            PLAIN
                .iter()
                .map(|(name, _, value)| (*name, *value))
                .collect(),
        )
    }
}

impl Settings {
    /// The kind of an attribute, if it is a plain one.
    pub fn kind(name: &str) -> Option<Kind> {
        let found = PLAIN.iter().find(|(known, ..)| *known == name);
        found.map(|(_, kind, _)| *kind)
    }

    pub fn get(&self, name: &str) -> u64 {
        self.0[name]
    }

    pub fn is(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    pub fn set(&mut self, name: &str, value: u64) {
        let slot = self.0.get_mut(name);
        *slot.expect("a plain attribute") = value;
    }

    /// The bytes of a logical block of the disk.
    pub fn block(&self) -> u64 {
        match self.get("blocksize") {
            0 => 512,
            bytes => bytes,
        }
    }

    /// The most bytes of one request: limits are in whole KiB, requests in whole blocks.
    pub fn request(&self) -> u64 {
        let sectors = match self.get("max_sectors") {
            0 => 255,
            sectors => sectors,
        };
        // A page or a block at least; the block layer counts in its own sectors of whole blocks.
        let bytes = sectors * 512 / self.block() * self.block();
        bytes.min(1280 * 1024)
    }

    /// What power-on makes of the settings. Those of null_blk stay changed when it fails.
    pub fn power_on(&mut self, machine: &Machine, in_c: bool) -> Result<(), &'static str> {
        let mut new = self.clone();
        let result = new.settle(machine);
        if result.is_ok() || in_c {
            *self = new;
        }
        result
    }

    fn settle(&mut self, machine: &Machine) -> Result<(), &'static str> {
        let new = self;
        if new.get("queue_mode") == 1 {
            return Err("EINVAL");
        }
        if new.get("queue_mode") == 0 {
            new.set("queue_mode", 2);
        }
        let queues = new.get("submit_queues").clamp(1, machine.cpus);
        // Guests of this test have one node.
        let queues = if new.is("use_per_node_hctx") {
            1
        } else {
            queues
        };
        new.set("submit_queues", queues);
        new.set(
            "poll_queues",
            new.get("poll_queues").min(machine.poll_queues),
        );
        new.set("irqmode", new.get("irqmode").min(2));
        if new.is("memory_backed") {
            new.set("blocking", 1);
        } else {
            new.set("cache_size", 0);
        }
        new.set("cache_size", new.get("cache_size").min(u64::MAX >> 20));
        new.set("mbps", new.get("mbps").min(40960));
        if new.get("hw_queue_depth") == 0 && !new.is("shared_tags") {
            return Err("EINVAL");
        }
        if !new.is("memory_backed") {
            new.set("discard", 0);
        }
        let block = new.block();
        let sectors = new.get("max_sectors");
        let fits = block.is_power_of_two() && (512..=65536).contains(&block);
        if !fits || (sectors != 0 && (sectors < 8 || sectors * 512 < block)) {
            return Err("EINVAL");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_in_the_kernel() {
        for (text, value) in [
            ("0", Ok(0)),
            ("010", Ok(8)),
            ("0x10", Ok(16)),
            ("0X1f", Ok(31)),
            ("+5", Ok(5)),
            ("5\n", Ok(5)),
            ("5\n\n", Err("EINVAL")),
            ("08", Err("EINVAL")),
            ("0x", Err("EINVAL")),
            ("", Err("EINVAL")),
            ("-1", Err("EINVAL")),
            ("+-5", Err("EINVAL")),
            (" 5", Err("EINVAL")),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err("ERANGE")),
        ] {
            assert_eq!(number(text), value, "{text:?}");
        }
        assert_eq!(parse(Kind::Uint, "4294967296"), Err("ERANGE"));
        assert_eq!(parse(Kind::Ulong, "4294967296"), Ok(1 << 32));
    }

    #[test]
    fn truth_is_read_as_in_the_kernel() {
        for text in ["1", "y", "Yes", "true", "on", "ON"] {
            assert_eq!(parse(Kind::Bool, text), Ok(1), "{text}");
        }
        for text in ["0", "n", "Nope", "false", "off", "of"] {
            assert_eq!(parse(Kind::Bool, text), Ok(0), "{text}");
        }
        for text in ["", "2", "o", " 1", "abc"] {
            assert_eq!(parse(Kind::Bool, text), Err("EINVAL"), "{text}");
        }
    }

    #[test]
    fn power_on_brings_values_into_range() {
        let machine = Machine {
            cpus: 4,
            poll_queues: 1,
        };
        let mut settings = Settings::default();
        for (name, value) in [
            ("submit_queues", 9),
            ("irqmode", 7),
            ("cache_size", 5),
            ("discard", 1),
        ] {
            settings.set(name, value);
        }
        assert_eq!(settings.power_on(&machine, false), Ok(()));
        for (name, value) in [
            ("submit_queues", 4),
            ("irqmode", 2),
            ("cache_size", 0),
            ("discard", 0),
        ] {
            assert_eq!(settings.get(name), value, "{name}");
        }
        settings.set("blocksize", 1000);
        assert_eq!(settings.power_on(&machine, false), Err("EINVAL"));
    }
}
