// SPDX-License-Identifier: GPL-2.0

//! The attributes of a device: how text becomes a value, what power-on makes of the values.

use super::System;
use std::collections::BTreeMap;

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    /// `unsigned int`.
    Uint,
    /// `unsigned long`.
    Ulong,
}

/// The attributes that are plain settings: name, type, default.
const PLAIN: [(&str, Kind, u64); 32] = [
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
    ("zone_append_max_sectors", Kind::Uint, i32::MAX as u64),
    ("zone_capacity", Kind::Ulong, 0),
    ("zone_full", Kind::Bool, 0),
    ("zone_max_active", Kind::Uint, 0),
    ("zone_max_open", Kind::Uint, 0),
    ("zone_nr_conv", Kind::Uint, 0),
    ("zone_size", Kind::Ulong, 256),
    ("zoned", Kind::Bool, 0),
];

/// Parses what is written to an attribute.
pub fn parse(kind: Kind, text: &str) -> Result<u64, &'static str> {
    match kind {
        _ if text.is_empty() => Err("EFAULT"),
        Kind::Bool => boolean(text).ok_or("EINVAL"),
        Kind::Uint => number(text)
            .and_then(|n| u32::try_from(n).map_err(|_| "ERANGE"))
            .map(u64::from),
        Kind::Ulong => number(text),
    }
}

/// Parses a text as `kstrtobool` does.
fn boolean(text: &str) -> Option<u64> {
    let mut letters = text.chars().map(|c| c.to_ascii_lowercase());
    match (letters.next()?, letters.next()) {
        ('y' | 't' | '1', _) | ('o', Some('n')) => Some(1),
        ('n' | 'f' | '0', _) | ('o', Some('f')) => Some(0),
        _ => None,
    }
}

/// Parses a text as `kstrtoull` does, with any base.
pub fn number(text: &str) -> Result<u64, &'static str> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, base) = match hex {
        Some(digits) => (digits, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
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
    /// The type of an attribute, if it is a plain one.
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
        *self.0.get_mut(name).expect("a plain attribute") = value;
    }

    /// The value, or another one for 0.
    fn get_or(&self, name: &str, default: u64) -> u64 {
        if self.is(name) {
            self.get(name)
        } else {
            default
        }
    }

    /// The bytes of a logical block of the disk.
    pub fn block(&self) -> u64 {
        self.get_or("blocksize", 512)
    }

    /// The most bytes of a request, in whole blocks.
    pub fn request(&self) -> u64 {
        let bytes = self.get_or("max_sectors", 255) * 512;
        (bytes / self.block() * self.block()).min(1280 * 1024)
    }

    /// Brings values into range, as power-on does; they are partly changed when it fails.
    pub fn sanitize(&mut self, system: &System) -> Result<(), &'static str> {
        if self.get("queue_mode") == 1 {
            return Err("EINVAL");
        }
        self.set("queue_mode", self.get_or("queue_mode", 2));
        let queues = match self.is("use_per_node_hctx") {
            // Guests of this test have one node.
            true => 1,
            false => self.get("submit_queues").clamp(1, system.cpus),
        };
        self.set("submit_queues", queues);
        for (name, most) in [
            ("poll_queues", system.poll_queues),
            ("irqmode", 2),
            (
                "cache_size",
                if self.is("memory_backed") {
                    u64::MAX >> 20
                } else {
                    0
                },
            ),
            ("mbps", 40960),
        ] {
            self.set(name, self.get(name).min(most));
        }
        if self.is("memory_backed") {
            self.set("blocking", 1);
        }
        if self.is("zoned") && !self.get("zone_size").is_power_of_two() {
            return Err("EINVAL");
        }
        if !self.is("hw_queue_depth") && !self.is("shared_tags") {
            return Err("EINVAL");
        }
        if !self.is("memory_backed") || self.is("zoned") {
            self.set("discard", 0);
        }
        if self.is("zoned") {
            self.sanitize_zones()?;
        }
        let (block, sectors) = (self.block(), self.get("max_sectors"));
        let fits = block.is_power_of_two() && (512..=65536).contains(&block);
        if !fits || (sectors != 0 && (sectors < 8 || sectors * 512 < block)) {
            return Err("EINVAL");
        }
        Ok(())
    }

    /// Brings the values of zones into range, whose size is a power of two.
    fn sanitize_zones(&mut self) -> Result<(), &'static str> {
        let (size, zone) = (self.get("size"), self.get("zone_size"));
        if zone > size {
            return Err("EINVAL");
        }
        let capacity = self.get_or("zone_capacity", zone);
        self.set("zone_capacity", capacity);
        if capacity > zone || (capacity < zone && size % zone > 0) {
            return Err("EINVAL");
        }
        let count = size.div_ceil(zone);
        let conventional = self.get("zone_nr_conv").min(count - 1);
        self.set("zone_nr_conv", conventional);
        let block = self.block() / 512;
        let append = self.get("zone_append_max_sectors") / block * block;
        self.set("zone_append_max_sectors", append.min(capacity * 2048));
        // A limit that allows for all zones is none.
        let limit = |value| {
            if value < count - conventional {
                value
            } else {
                0
            }
        };
        let active = limit(self.get("zone_max_active"));
        self.set("zone_max_active", active);
        let open = match (active, self.get("zone_max_open")) {
            (0, open) => limit(open),
            (active, open) => open.min(active),
        };
        self.set("zone_max_open", open);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_as_in_the_kernel() {
        for (text, value) in [("0", 0), ("010", 8), ("0x10", 16), ("0X1f", 31), ("+5", 5)] {
            assert_eq!(number(text), Ok(value), "{text:?}");
        }
        assert_eq!(number("5\n"), Ok(5));
        for text in ["5\n\n", "08", "0x", "", "-1", "+-5", " 5"] {
            assert_eq!(number(text), Err("EINVAL"), "{text:?}");
        }
        assert_eq!(number("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(number("18446744073709551616"), Err("ERANGE"));
        assert_eq!(parse(Kind::Uint, "4294967296"), Err("ERANGE"));
        assert_eq!(parse(Kind::Ulong, "4294967296"), Ok(1 << 32));
    }

    #[test]
    fn booleans_are_parsed_as_in_the_kernel() {
        for (result, texts) in [
            (Ok(1), "1 y Yes true on ON"),
            (Ok(0), "0 n Nope false off of"),
            (Err("EINVAL"), "2 o abc"),
        ] {
            for text in texts.split(' ') {
                assert_eq!(parse(Kind::Bool, text), result, "{text}");
            }
        }
        assert_eq!(parse(Kind::Bool, " 1"), Err("EINVAL"));
        assert_eq!(parse(Kind::Bool, ""), Err("EFAULT"));
    }

    #[test]
    fn power_on_brings_values_into_range() {
        let system = System {
            cpus: 4,
            poll_queues: 1,
        };
        let mut settings = Settings::default();
        let names = ["submit_queues", "irqmode", "cache_size", "discard"];
        names.map(|name| settings.set(name, 9));
        assert_eq!(settings.sanitize(&system), Ok(()));
        assert_eq!(names.map(|name| settings.get(name)), [4, 2, 0, 0]);
        settings.set("blocksize", 1000);
        assert_eq!(settings.sanitize(&system), Err("EINVAL"));
    }

    #[test]
    fn power_on_brings_zones_into_range() {
        let system = System {
            cpus: 4,
            poll_queues: 1,
        };
        let names = [
            "zone_capacity",
            "zone_nr_conv",
            "zone_append_max_sectors",
            "zone_max_open",
            "zone_max_active",
        ];
        for (size, zone, before, after) in [
            (8, 1, [0, 0, 77, 0, 0], Ok([1, 0, 72, 0, 0])),
            (8, 1, [1, 9, 9999, 1, 1], Ok([1, 7, 2048, 0, 0])),
            (8, 1, [1, 2, 0, 4, 3], Ok([1, 2, 0, 3, 3])),
            (8, 1, [1, 2, 0, 6, 6], Ok([1, 2, 0, 0, 0])),
            (7, 2, [2, 0, 0, 3, 0], Ok([2, 0, 0, 3, 0])),
            (7, 2, [1, 0, 0, 0, 0], Err("EINVAL")),
            (8, 2, [3, 0, 0, 0, 0], Err("EINVAL")),
            (8, 3, [1, 0, 0, 0, 0], Err("EINVAL")),
            (1, 2, [1, 0, 0, 0, 0], Err("EINVAL")),
        ] {
            let mut settings = Settings::default();
            for (name, value) in [("zoned", 1), ("size", size), ("zone_size", zone)] {
                settings.set(name, value);
            }
            settings.set("blocksize", 4096);
            for (name, value) in names.iter().zip(before) {
                settings.set(name, value);
            }
            let result = settings.sanitize(&system);
            let result = result.map(|()| names.map(|name| settings.get(name)));
            assert_eq!(result, after, "{size} {zone} {before:?}");
        }
    }
}
