// SPDX-License-Identifier: GPL-2.0

//! Requests about the zones of a disk.
//!
//! A zone is reported as `START+LENGTH/CAPACITY@POINTER:CONDITION`, in bytes.

use nix::{ioctl_readwrite, ioctl_write_ptr};
use std::{fs::File, io, mem::offset_of, os::fd::AsRawFd};

/// Bytes in a sector.
const SECTOR: u64 = 512;

/// The most zones of a report.
const MOST: usize = 64;

/// Asks for what the block layer remembers.
const CACHED: u32 = 1 << 31;

/// `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Zone {
    start: u64,
    len: u64,
    pointer: u64,
    kind: u8,
    condition: u8,
    non_sequential: u8,
    reset: u8,
    reserved: [u8; 4],
    capacity: u64,
    more: [u64; 3],
}

/// `struct blk_zone_report`, without the zones, by whose length the requests are numbered.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Head {
    sector: u64,
    count: u32,
    flags: u32,
}

#[repr(C)]
struct Report {
    head: Head,
    zones: [Zone; MOST],
}

ioctl_readwrite!(blkreportzone, 0x12, 130, Head);
ioctl_write_ptr!(blkresetzone, 0x12, 131, [u64; 2]);
ioctl_write_ptr!(blkopenzone, 0x12, 134, [u64; 2]);
ioctl_write_ptr!(blkclosezone, 0x12, 135, [u64; 2]);
ioctl_write_ptr!(blkfinishzone, 0x12, 136, [u64; 2]);
ioctl_readwrite!(blkreportzonev2, 0x12, 142, Head);

/// Reports so many zones from that with an offset on, as the driver tells of them or as the block
/// layer remembers them.
pub fn report(disk: &File, verb: &str, offset: u64, count: u64) -> io::Result<String> {
    let mut report = Report {
        head: Head {
            sector: offset / SECTOR,
            count: count.min(MOST as u64) as u32,
            flags: 0,
        },
        zones: [Zone::default(); MOST],
    };
    const { assert!(offset_of!(Report, zones) == size_of::<Head>()) };
    let all: *mut Report = &mut report;
    // SAFETY: The head is the first field, behind it is room for as many zones as it asks for.
    unsafe {
        if verb == "report-cached" {
            (*all).head.flags = CACHED;
            blkreportzonev2(disk.as_raw_fd(), all.cast())?;
        } else {
            blkreportzone(disk.as_raw_fd(), all.cast())?;
        }
    }
    let mut text = String::from("ok");
    // The flag that each zone has a capacity.
    if report.head.flags != 1 {
        text += &format!(" flags={:x}", report.head.flags);
    }
    for zone in &report.zones[..(report.head.count as usize).min(MOST)] {
        text += " ";
        text += &show(zone);
    }
    Ok(text)
}

fn show(zone: &Zone) -> String {
    let bytes = |sectors: u64| u128::from(sectors) * u128::from(SECTOR);
    let pointer = match zone.pointer {
        u64::MAX => "none".into(),
        sector => bytes(sector).to_string(),
    };
    let condition = match (zone.kind, zone.condition) {
        (1, 0) => "conventional".into(),
        (2, 1) => "empty".into(),
        (2, 2) => "implicit".into(),
        (2, 3) => "explicit".into(),
        (2, 4) => "closed".into(),
        (2, 13) => "readonly".into(),
        (2, 14) => "full".into(),
        (2, 15) => "offline".into(),
        (2, 255) => "active".into(),
        (kind, condition) => format!("{kind}:{condition}"),
    };
    let [start, len, capacity] = [zone.start, zone.len, zone.capacity].map(bytes);
    let mut text = format!("{start}+{len}/{capacity}@{pointer}:{condition}");
    for (is_set, flag) in [(zone.non_sequential, "non-seq"), (zone.reset, "reset")] {
        if is_set != 0 {
            text += ":";
            text += flag;
        }
    }
    text
}

/// Opens, closes, finishes or resets zones.
pub fn change(disk: &File, verb: &str, offset: u64, len: u64) -> io::Result<i32> {
    let call = match verb {
        "open-zones" => blkopenzone,
        "close-zones" => blkclosezone,
        "finish-zones" => blkfinishzone,
        _ => blkresetzone,
    };
    // SAFETY: These requests read two numbers.
    Ok(unsafe { call(disk.as_raw_fd(), &[offset / SECTOR, len / SECTOR]) }?)
}
