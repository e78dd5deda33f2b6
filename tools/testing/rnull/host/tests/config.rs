// SPDX-License-Identifier: GPL-2.0

//! Checks what settings build, against null_blk's rules told in other words.

#[path = "../../../../../drivers/block/rnull/config.rs"]
mod config;
#[path = "../../../../../drivers/block/rnull/zone_layout.rs"]
mod zone_layout;

use config::*;
use proptest::prelude::*;

fn limits() -> impl Strategy<Value = SystemLimits> {
    let numbers = (1..9u32, 1..5u32, 0..5u32);

    let zones = prop_oneof![8 => 1..20u32, 8 => Just(1 << 22), 1 => Just(0)];
    (numbers, any::<[bool; 2]>(), zones).prop_map(
        |((cpus, nodes, polls), [large, coarse], zones)| SystemLimits {
            cpus,
            nodes,
            poll_queues: polls,
            page_size: 4096,
            max_block_size: if large { 65536 } else { 4096 },
            min_cached_block_size: if coarse { 4096 } else { 512 },
            max_zones: zones,
        },
    )
}

/// Numbers that matter to some attribute, besides any.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![0..12u32, (0..20u32).prop_map(|n| 1 << n), any::<u32>()]
}

/// Sizes in MiB, for which a disk can have zones.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0..40usize, (0..64u32).prop_map(|n| 1 << n), any::<usize>()]
}

fn settings() -> impl Strategy<Value = Config> {
    let sizes = (size(), size(), size());
    let numbers = proptest::array::uniform4(number());
    let flags = any::<[bool; 3]>();

    (settings_without_zones(), sizes, numbers, flags).prop_map(
        |(c, (mut size, mut zone, mut capacity), mut n, [zoned, full, small])| {
            // Mostly a few zones, which a disk can have.
            if small {
                zone = 1 << (zone % 5);
                (size, capacity) = (size % 80, capacity % (zone + 2));
                n = [n[0], n[1] % 12, n[2] % 12, n[3] % 6];
            }
            Config {
                size: if zoned { size } else { c.size },
                zone_append_max_sectors: n[0],
                zone_capacity: capacity,
                zone_full: full,
                zone_max_active: n[1],
                zone_max_open: n[2],
                zone_nr_conv: n[3],
                zone_size: zone,
                zoned,
                ..c
            }
        },
    )
}

fn settings_without_zones() -> impl Strategy<Value = Config> {
    let numbers = proptest::array::uniform8(number());
    let large = (any::<usize>(), any::<usize>(), 0..4u32, 0..5u32);
    let flags = proptest::array::uniform12(any::<bool>());

    (numbers, large, flags).prop_map(|(n, (nsec, size, mode, irq), f)| Config {
        badblocks_once: f[6],
        badblocks_partial_io: f[7],
        blocking: f[0],
        blocksize: n[0],
        cache_size: size,
        completion_nsec: nsec,
        discard: f[8],
        fua: f[9],
        home_node: n[1],
        hw_queue_depth: n[2],
        index: n[3],
        irqmode: irq,
        max_sectors: n[4],
        mbps: n[6],
        memory_backed: f[1],
        no_sched: f[2],
        poll_queues: n[7],
        queue_mode: mode,
        rotational: f[3],
        shared_tag_bitmap: f[10],
        shared_tags: f[11],
        size,
        submit_queues: n[5],
        use_per_node_hctx: f[4],
        virt_boundary: f[5],
        zone_append_max_sectors: 0,
        zone_capacity: 0,
        zone_full: false,
        zone_max_active: 0,
        zone_max_open: 0,
        zone_nr_conv: 0,
        zone_size: 0,
        zoned: false,
    })
}

/// The bytes in so many MiB.
fn bytes(mebibytes: usize) -> u128 {
    (mebibytes as u128) << 20
}

/// The number of zones of a disk. It has at most so many bytes as an `loff_t` can count, of which
/// those beyond 2^64 are not counted.
fn zone_count(c: &Config) -> u128 {
    let disk = (bytes(c.size) as u64 as u128 / 512).min(i64::MAX as u128 / 512);
    let zone = bytes(c.zone_size) / 512;
    (disk + zone - 1) / zone
}

/// Whether null_blk or the block layer refuses these zones.
fn zones_refused(c: &Config, limits: &SystemLimits) -> bool {
    let zone = c.zone_size;
    let capacity = if c.zone_capacity == 0 {
        zone
    } else {
        c.zone_capacity
    };

    limits.max_zones == 0
        || zone.count_ones() != 1
        || zone > c.size
        || capacity > zone
        || (capacity != zone && c.size % zone != 0)
        || bytes(zone) > 512 << 31
        || !(1..=u128::from(limits.max_zones)).contains(&zone_count(c))
}

/// Whether null_blk or the block layer refuses these settings, or a cache with large pages does.
fn refused(c: &Config, limits: &SystemLimits) -> bool {
    let block = if c.blocksize == 0 { 512 } else { c.blocksize };

    c.queue_mode == 1
        || block.count_ones() != 1
        || block < 512
        || block > limits.max_block_size
        || (c.memory_backed && c.cache_size > 0 && block < limits.min_cached_block_size)
        || (c.max_sectors != 0 && c.max_sectors < 8)
        || (c.max_sectors != 0 && u64::from(c.max_sectors) * 512 < u64::from(block))
        || (c.zoned && zones_refused(c, limits))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_null_blk_refuses_is_refused(c in settings(), m in limits()) {
        prop_assert_eq!(c.validate(&m).is_err(), refused(&c, &m));
    }

    #[test]
    fn what_is_built_fits_the_machine(c in settings(), m in limits()) {
        if let Ok(plan) = c.validate(&m) {
            let shown = plan.settings;

            prop_assert!(plan.block_size.is_power_of_two() && plan.block_size >= 512);
            prop_assert!(plan.block_size <= m.max_block_size);
            prop_assert!(shown.cache_size == 0 || plan.block_size >= m.min_cached_block_size);
            prop_assert!(plan.capacity <= i64::MAX as u64 / 512);
            prop_assert!(plan.node.map_or(true, |node| node < m.nodes));
            prop_assert!(shown.irqmode <= 2);
            if shown.uses_bios() {
                prop_assert!(!shown.zoned && shown.mbps == 0);
                return Ok(());
            }
            prop_assert!(shown.queue_mode != 0);
            prop_assert!(shown.blocking || !shown.memory_backed);
            let most = if c.use_per_node_hctx { m.nodes } else { m.cpus };
            prop_assert!((1..=most).contains(&shown.submit_queues));
            prop_assert!(shown.poll_queues <= m.poll_queues);
            // What is shown could be asked for while the disk is on.
            prop_assert!(c.use_per_node_hctx || queues_allowed(&shown, &m));
        }
    }

    #[test]
    fn only_some_settings_change(c in settings(), m in limits()) {
        if let Ok(plan) = c.validate(&m) {
            let shown = plan.settings;
            let bios = c.queue_mode == 0 && !c.zoned;
            let expected = Config {
                blocking: if bios { c.blocking } else { shown.blocking },
                cache_size: if c.memory_backed { c.cache_size.min((1 << 44) - 1) } else { 0 },
                discard: c.discard && c.memory_backed && !c.zoned,
                irqmode: c.irqmode.min(2),
                mbps: if bios { 0 } else { c.mbps.min(40960) },
                poll_queues: if bios { c.poll_queues } else { c.poll_queues.min(m.poll_queues) },
                queue_mode: if c.queue_mode == 0 && c.zoned { 2 } else { c.queue_mode },
                submit_queues: if bios { c.submit_queues } else { shown.submit_queues },
                zone_append_max_sectors: shown.zone_append_max_sectors,
                zone_capacity: shown.zone_capacity,
                zone_max_active: shown.zone_max_active,
                zone_max_open: shown.zone_max_open,
                zone_nr_conv: shown.zone_nr_conv,
                ..c
            };

            prop_assert_eq!(shown, expected);
            // What is shown builds the same disk again.
            prop_assert_eq!(shown.validate(&m), Ok(plan));
        }
    }

    #[test]
    fn zones_are_those_of_null_blk(mut c in settings(), mut m in limits()) {
        // Nearly all disks should have zones.
        // `queue_mode=0` becomes 2 with zones.
        (c.zoned, c.queue_mode, c.blocksize, c.max_sectors, c.cache_size) = (true, c.queue_mode & 2, 1 << (9 + c.blocksize % 4), 0, 0);
        m.max_zones = m.max_zones.max(8);
        if c.zone_size > 1 << 20 {
            (c.zone_size, c.size) = (c.zone_size % 8, c.size % 80);
        }
        let Ok(plan) = c.validate(&m) else {
            return Ok(());
        };
        let (shown, zones) = (plan.settings, plan.zones.unwrap());
        let capacity = if c.zone_capacity == 0 { c.zone_size } else { c.zone_capacity };
        prop_assert_eq!(shown.zone_capacity, capacity);
        prop_assert_eq!(u128::from(zones.size()), bytes(c.zone_size) / 512);
        prop_assert_eq!(u128::from(zones.count()), zone_count(&c));
        prop_assert_eq!(shown.zone_nr_conv, c.zone_nr_conv.min(zones.count() - 1));
        prop_assert_eq!(zones.conventional(), shown.zone_nr_conv);
        // The last zone may be shorter than the capacity of the others.
        let last = zones.zone(zones.count() - 1).unwrap();
        prop_assert_eq!(u128::from(last.start + last.len), u128::from(plan.capacity));
        prop_assert_eq!(u128::from(last.capacity), (bytes(capacity) / 512).min(last.len.into()));
        // Whole blocks, within a zone.
        let append = (0..=c.zone_append_max_sectors)
            .rev()
            .find(|sectors| u64::from(*sectors) * 512 % u64::from(plan.block_size) == 0)
            .unwrap();
        let most = bytes(capacity) / 512;
        prop_assert_eq!(u128::from(shown.zone_append_max_sectors), u128::from(append).min(most));
        // A limit as large as the number of zones would never be reached.
        let sequential = zones.count() - shown.zone_nr_conv;
        let active = if c.zone_max_active < sequential { c.zone_max_active } else { 0 };
        let open = match (active, c.zone_max_open) {
            (0, open) if open >= sequential => 0,
            (0, open) => open,
            (active, open) => open.min(active),
        };
        prop_assert_eq!((shown.zone_max_active, shown.zone_max_open), (active, open));
    }

    #[test]
    fn a_size_that_fits_is_the_size(size in 0..1usize << 43, mut c in settings(), m in limits()) {
        (c.size, c.zoned) = (size, false);
        if let Ok(plan) = c.validate(&m) {
            prop_assert_eq!(plan.capacity, size as u64 * 2048);
        }
    }

    #[test]
    fn parameters_are_clamped(
        n in prop_oneof![any::<i32>(), -3..12, 4090..4100],
        per_node in any::<bool>(),
        m in limits(),
    ) {
        let node = parameter_node(n, &m);
        prop_assert_eq!(node, if n >= 0 && n < m.nodes as i32 { n } else { -1 });

        let queues = parameter_queues(n, per_node, &m);
        let wanted = match n {
            _ if per_node => m.nodes,
            0 => 1,
            1.. => (n as u32).min(m.cpus),
            _ => m.cpus,
        };
        prop_assert_eq!(queues, wanted as i32);

        let block = parameter_block_size(n, &m);
        prop_assert_eq!(block, if (0..=4096).contains(&n) { n } else { 4096 });
    }

    #[test]
    fn queues_are_counted(mut c in settings(), m in limits(), submit in 0..12u32, poll in 0..8u32) {
        (c.submit_queues, c.poll_queues) = (submit, poll);
        let allowed = submit != 0 && submit <= m.cpus && poll <= m.poll_queues;
        prop_assert_eq!(queues_allowed(&c, &m), allowed);
    }
}
