// SPDX-License-Identifier: GPL-2.0

//! Options with values at which something changes, some of which make no sense.

use super::chance::Chance;
use kernel::{
    block::{
        limits::QueueLimits,
        mq::{
            QueueCounts,
            TagSetOptions, //
        },
        Sectors, //
    },
    cpu::nr_cpu_ids,
    fault::FaultSettings,
    prelude::*,
    str::CString,
    time::Delta, //
};

/// Numbers at which something changes.
const EDGES: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    255,
    256,
    511,
    512,
    513,
    1000,
    4095,
    4096,
    4097,
    32768,
    65535,
    65536,
    65537,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    (1 << 54) - 1,
    1 << 54,
    (1 << 55) - 1,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

/// A number at which something changes.
pub(crate) fn edge(chance: &mut Chance) -> u64 {
    chance.pick(EDGES)
}

fn edge32(chance: &mut Chance) -> u32 {
    edge(chance).min(u32::MAX.into()) as u32
}

/// A time that is short, or makes no sense.
pub(crate) fn delay(chance: &mut Chance) -> Delta {
    if chance.one_in(8) {
        return Delta::from_nanos(chance.pick(&[i64::MIN, -1, 0, 1]));
    }
    Delta::from_micros(chance.below(3000) as i64)
}

/// A time after which a request may have timed out.
pub(crate) fn long_delay(chance: &mut Chance) -> Delta {
    Delta::from_millis(500 + chance.below(2000) as i64)
}

/// Counts of queues, mostly possible ones.
pub(crate) fn queue_counts(chance: &mut Chance) -> QueueCounts {
    let cpus = u64::from(nr_cpu_ids());
    let mut counts = QueueCounts {
        default: 1 + chance.below(cpus) as u32,
        read: chance.pick(&[0, 0, 1, 2]),
        poll: chance.pick(&[0, 0, 1, 2]),
    };
    // What is possible with so many would take the memory of all, so only the impossible is asked.
    match chance.below(12) {
        0 => counts.default = chance.pick(&[0, u32::MAX]),
        1 => counts.read = chance.pick(&[65536, u32::MAX - 1, u32::MAX]),
        2 => counts.poll = chance.pick(&[65536, u32::MAX - 1, u32::MAX]),
        _ => {}
    }
    counts
}

/// Options of a tag set, mostly possible ones. Requests time out after `timeout`, if that is given.
pub(crate) fn tag_set_options(chance: &mut Chance, timeout: Option<Delta>) -> TagSetOptions {
    let mut options = TagSetOptions {
        queues: queue_counts(chance),
        depth: chance.pick(&[1, 2, 3, 16, 64]),
        node: None,
        timeout,
        no_sched: chance.one_in(2),
        shared_bitmap: chance.one_in(3),
    };
    match chance.below(16) {
        0 => options.depth = 0,
        1 => {
            options.queues = QueueCounts::default();
            options.depth = chance.pick(&[1023, 10240, 10241, u32::MAX]);
        }
        2 => options.node = Some(edge32(chance)),
        3 => options.timeout = Some(Delta::from_nanos(edge(chance) as i64)),
        _ => {}
    }
    options
}

/// Limits of a disk, with up to three fields that may make no sense.
pub(crate) fn queue_limits(chance: &mut Chance) -> QueueLimits {
    let mut limits = QueueLimits {
        logical_block_size: chance.pick(&[0, 512, 1024, 4096]),
        max_hw_discard_sectors: Sectors(chance.pick(&[0, 8, 1024])),
        max_write_zeroes_sectors: Sectors(chance.pick(&[0, 8, 1024])),
        write_cache: chance.one_in(2),
        fua: chance.one_in(2),
        rotational: chance.one_in(4),
        ..QueueLimits::default()
    };
    let fields = chance.below(8);
    if fields < 4 {
        for _ in 0..fields {
            one_limit(chance, &mut limits);
        }
    }
    limits
}

/// Gives one field of the limits another value.
fn one_limit(chance: &mut Chance, limits: &mut QueueLimits) {
    let value = edge(chance);
    let (value32, sectors) = (value.min(u32::MAX.into()) as u32, Sectors(value));
    match chance.below(19) {
        0 => limits.logical_block_size = value32,
        1 => limits.physical_block_size = value32,
        2 => limits.io_min = value32,
        3 => limits.io_opt = value32,
        4 => limits.max_hw_sectors = sectors,
        5 => limits.chunk_sectors = sectors,
        6 => limits.max_segments = value.min(u16::MAX.into()) as u16,
        7 => limits.max_segment_size = value32,
        8 => limits.virt_boundary_mask = value as usize,
        9 => limits.dma_alignment = value32,
        10 => limits.max_hw_discard_sectors = sectors,
        11 => limits.discard_granularity = value32,
        12 => limits.max_write_zeroes_sectors = sectors,
        13 => limits.zoned = true,
        14 => limits.max_open_zones = value32,
        15 => limits.max_active_zones = value32,
        16 => limits.max_hw_zone_append_sectors = sectors,
        17 => limits.write_cache = !limits.write_cache,
        _ => limits.fua = !limits.fua,
    }
}

/// The capacity of a disk, mostly a possible one.
pub(crate) fn capacity(chance: &mut Chance) -> Sectors {
    if chance.one_in(8) {
        Sectors(edge(chance))
    } else {
        Sectors::from_mebibytes(chance.pick(&[1, 16, 64]))
    }
}

/// The name of a disk; in some cases, one that cannot be, or that another disk has.
pub(crate) fn disk_name(chance: &mut Chance, any: bool, step: u64, number: u32) -> Result<CString> {
    let odd: &CStr = match chance.below(if any { 40 } else { u64::MAX }) {
        0 => c"",
        1 => c"adv_same",
        2 => c"adv/below/others",
        3 => c"adv_with_a_name_that_is_longer_than_any_other",
        4 => c"adv\xff\x01 %s\n",
        _ => return Ok(CString::try_from_fmt(fmt!("adv{step}_{number}"))?),
    };
    Ok(CString::try_from(odd)?)
}

/// When a fault happens.
pub(crate) fn fault_settings(chance: &mut Chance) -> FaultSettings {
    FaultSettings {
        interval: edge(chance) as usize,
        probability: edge(chance) as usize,
        space: edge(chance) as i32,
        times: edge(chance) as i32,
        verbose: 0,
    }
}
