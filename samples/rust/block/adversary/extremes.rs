// SPDX-License-Identifier: GPL-2.0

//! Random options, which include boundary values, some of them invalid.

use super::rng::Rng;
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

/// The most zones of a disk that may be added.
const MOST_ZONES: u64 = 4096;

/// Boundary values.
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

/// Returns a boundary value.
pub(crate) fn edge(rng: &mut Rng) -> u64 {
    rng.pick(EDGES)
}

fn edge32(rng: &mut Rng) -> u32 {
    edge(rng).min(u32::MAX.into()) as u32
}

/// Returns a short delay, or an invalid one.
pub(crate) fn delay(rng: &mut Rng) -> Delta {
    if rng.one_in(8) {
        return Delta::from_nanos(rng.pick(&[i64::MIN, -1, 0, 1]));
    }
    Delta::from_micros(rng.below(3000) as i64)
}

/// Returns a delay after which a request may have timed out.
pub(crate) fn long_delay(rng: &mut Rng) -> Delta {
    Delta::from_millis(500 + rng.below(2000) as i64)
}

/// Returns numbers of queues, most of them valid.
pub(crate) fn queue_counts(rng: &mut Rng) -> QueueCounts {
    let cpus = u64::from(nr_cpu_ids());
    let mut counts = QueueCounts {
        default: 1 + rng.below(cpus) as u32,
        read: rng.pick(&[0, 0, 1, 2]),
        poll: rng.pick(&[0, 0, 1, 2]),
    };
    match rng.below(12) {
        0 => counts.default = edge32(rng),
        1 => counts.read = edge32(rng),
        2 => counts.poll = edge32(rng),
        _ => {}
    }
    counts
}

/// Returns options of a tag set, most of them valid. `timeout` is the timeout of requests.
pub(crate) fn tag_set_options(rng: &mut Rng, timeout: Option<Delta>) -> TagSetOptions {
    let mut options = TagSetOptions {
        queues: queue_counts(rng),
        depth: rng.pick(&[1, 2, 3, 16, 64]),
        reserved_tags: rng.pick(&[0, 0, 0, 0, 1]),
        node: None,
        timeout,
        no_sched: rng.one_in(2),
        shared_bitmap: rng.one_in(3),
    };
    match rng.below(16) {
        0 => options.depth = 0,
        1 => {
            options.queues = QueueCounts::default();
            options.depth = rng.pick(&[1023, 10240, 10241, u32::MAX]);
        }
        2 => options.node = Some(edge32(rng)),
        3 => options.timeout = Some(Delta::from_nanos(edge(rng) as i64)),
        _ => {}
    }
    options
}

/// Returns limits of a disk, up to three of them boundary values.
pub(crate) fn queue_limits(rng: &mut Rng) -> QueueLimits {
    let mut limits = QueueLimits {
        logical_block_size: rng.pick(&[0, 512, 1024, 4096]),
        max_hw_discard_sectors: Sectors(rng.pick(&[0, 8, 1024])),
        max_write_zeroes_sectors: Sectors(rng.pick(&[0, 8, 1024])),
        write_cache: rng.one_in(2),
        fua: rng.one_in(2),
        rotational: rng.one_in(4),
        ..QueueLimits::default()
    };
    if rng.one_in(3) {
        limits = zoned(rng, limits);
    }
    let fields = rng.below(8);
    if fields < 4 {
        for _ in 0..fields {
            randomize_limit(rng, &mut limits);
        }
    }
    limits
}

/// Returns the limits of a zoned disk.
pub(crate) fn zoned(rng: &mut Rng, limits: QueueLimits) -> QueueLimits {
    QueueLimits {
        zoned: true,
        chunk_sectors: Sectors(rng.pick(&[16, 64, 128, 1024, 2048, 4096, 32768])),
        max_open_zones: rng.pick(&[0, 0, 1, 3, 8]),
        max_active_zones: rng.pick(&[0, 0, 8, 100]),
        max_hw_zone_append_sectors: Sectors(rng.pick(&[0, 8, 64, 1024, 1 << 20])),
        ..limits
    }
}

/// Sets one limit to a boundary value.
fn randomize_limit(rng: &mut Rng, limits: &mut QueueLimits) {
    let value = edge(rng);
    let (value32, sectors) = (value.min(u32::MAX.into()) as u32, Sectors(value));
    match rng.below(19) {
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

/// Returns the capacity of a disk with these limits, in most cases a valid one.
pub(crate) fn capacity(rng: &mut Rng, limits: &QueueLimits) -> Sectors {
    let capacity = if rng.one_in(8) {
        Sectors(edge(rng))
    } else {
        Sectors::from_mebibytes(rng.pick(&[1, 16, 64]))
    };
    // To add a disk takes time for each zone. The number may still be one that C cannot count.
    let most = MOST_ZONES * limits.chunk_sectors.0.min(1 << 31);
    let countable = capacity.0 / limits.chunk_sectors.0.max(1) <= i32::MAX as u64;
    if limits.zoned && countable {
        Sectors(capacity.0.min(most))
    } else {
        capacity
    }
}

/// Returns the name of a disk. Some names are invalid, or those of other disks.
pub(crate) fn disk_name(rng: &mut Rng, any: bool, step: u64, number: u32) -> Result<CString> {
    let odd: &CStr = match rng.below(if any { 40 } else { u64::MAX }) {
        0 => c"",
        1 => c"adv_same",
        2 => c"adv/below/others",
        3 => c"adv_with_a_name_that_is_longer_than_any_other",
        4 => c"adv\xff\x01 %s\n",
        _ => return CString::try_from_fmt(fmt!("adv{step}_{number}")),
    };
    Ok(CString::try_from(odd)?)
}

/// Returns the settings of a fault.
pub(crate) fn fault_settings(rng: &mut Rng) -> FaultSettings {
    FaultSettings {
        interval: edge(rng) as usize,
        probability: edge(rng) as usize,
        space: edge(rng) as i32,
        times: edge(rng) as i32,
        verbose: 0,
    }
}
