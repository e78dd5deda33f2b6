// SPDX-License-Identifier: GPL-2.0

//! Strategies for the settings of a device, initial ones or changes.

use proptest::{bool::weighted, collection::vec, prelude::*, sample::select};

/// An attribute or parameter with its text.
pub type Setting = (&'static str, String);

/// Flags that may be changed at any time.
const FLAGS: [&str; 8] = [
    "rotational",
    "no_sched",
    "badblocks_once",
    "badblocks_partial_io",
    "fua",
    "blocking",
    "discard",
    "zone_full",
];

/// Numbers to which attributes may be changed, with the weight of each.
const NUMBERS: [(u32, &str, &[u64]); 19] = [
    (2, "submit_queues", &[0, 1, 2, 3, 4, 5]),
    (2, "poll_queues", &[0, 1, 2]),
    // On a system with one node, one queue and any node.
    (1, "use_per_node_hctx", &[0, 1]),
    (1, "home_node", &[0, u32::MAX as u64]),
    (1, "irqmode", &[0, 1, 2, 3]),
    // With 0, rnull gets bios, and null_blk requests.
    (1, "queue_mode", &[1, 2, 7]),
    (1, "hw_queue_depth", &[0, 1, 2, 64, 20000]),
    // More than 128 pages are also split by where these pages are.
    (1, "max_sectors", &[0, 128, 130, 255, 900]),
    // Smaller than what is written, or larger; what is beyond the end stays.
    (2, "size", &[0, 1, 2, 3, 4, 7, 8]),
    (1, "completion_nsec", &[0, 1, 1000]),
    // Never back to 0: null_blk uses a timer then that is not set up (defect 1). More than is
    // transferred in a tick.
    (1, "mbps", &[5000, 40960, 99999]),
    // Never back to 0: null_blk still has its cache then, and may flush it for ever (defect 1).
    (1, "cache_size", &[1, 2]),
    (1, "zoned", &[0, 1]),
    (1, "zone_size", &[0, 1, 1, 2, 2, 3, 4]),
    (1, "zone_capacity", &[0, 1, 2, 3]),
    (1, "zone_nr_conv", &[0, 1, 2, 9]),
    (1, "zone_max_open", &[0, 1, 2, 3, 9]),
    (1, "zone_max_active", &[0, 1, 2, 3, 9]),
    (1, "zone_append_max_sectors", &[0, 7, 64, 100_000]),
];

/// An attribute that may be changed while operations go on, with a text that null_blk survives.
pub fn change() -> impl Strategy<Value = Setting> {
    let flag = select(&["0", "1", "y", "N", "2", "\\e"][..]);
    let odd = select(&["abc", "-1", "\\s1", "0x4\\n", "99999999999999999999", "\\e"][..]);
    let parsed = &[
        "size",
        "submit_queues",
        "irqmode",
        "hw_queue_depth",
        "completion_nsec",
        "zone_size",
        "zone_max_open",
    ][..];
    let number = |(weight, name, values): (u32, &'static str, &'static [u64])| {
        (
            weight,
            select(values)
                .prop_map(move |value| (name, value.to_string()))
                .boxed(),
        )
    };
    let numbers = prop::strategy::Union::new_weighted(NUMBERS.map(number).to_vec());
    prop_oneof![
        4 => (select(&FLAGS[..]), flag.prop_map(String::from)),
        15 => numbers,
        1 => (select(parsed), odd.prop_map(String::from)),
    ]
}

/// The parameters of a driver whose devices share their tags, unless they are set otherwise.
pub fn shared_tags() -> impl Strategy<Value = Vec<Setting>> {
    let depth = select(&[1u64, 2, 3, 8, 64][..]);
    let all = (1..=4u64, 0..=3u64, depth, 0..=1u64, 0..=1u64);
    all.prop_map(|(submit, poll, depth, bitmap, no_sched)| {
        // Blocking, because null_blk sleeps in atomic context without (defect 6).
        let all = [
            ("shared_tags", 1),
            ("blocking", 1),
            ("submit_queues", submit),
            ("poll_queues", poll),
            ("hw_queue_depth", depth),
            ("shared_tag_bitmap", bitmap),
            ("no_sched", no_sched),
        ];
        all.map(|(name, value)| (name, value.to_string())).into()
    })
}

/// The settings of zones that a device has first, which may get some later.
fn zones() -> impl Strategy<Value = Vec<Setting>> {
    let all = (
        select(
            &[
                (8u64, 1u64, 0u64),
                (8, 1, 0),
                (7, 2, 0),
                (8, 2, 1),
                (6, 1, 1),
            ][..],
        ),
        select(&[0u64, 0, 1, 2][..]),
        select(&[0u64, 0, 1, 1, 2, 3][..]),
        select(&[0u64, 0, 1, 2, 2, 3][..]),
        weighted(0.1),
    );
    let zoned = all.prop_map(
        |((size, zone, capacity), conventional, open, active, full)| {
            let all = [
                ("zoned", 1),
                ("size", size),
                ("zone_size", zone),
                ("zone_capacity", capacity),
                ("zone_nr_conv", conventional),
                ("zone_max_open", open),
                ("zone_max_active", active),
                ("zone_full", full.into()),
            ];
            Vec::from(all.map(|(name, value)| (name, value.to_string())))
        },
    );
    prop_oneof![
        6 => Just(vec![("zone_size", "1".to_string())]),
        4 => zoned,
    ]
}

/// The settings that a device has first, besides its block size.
pub fn initial() -> impl Strategy<Value = Vec<Setting>> {
    let names = &[
        "discard",
        "discard",
        "virt_boundary",
        "shared_tag_bitmap",
        "cache_size",
    ][..];
    let flag = (
        select(names),
        select(&["1", "0"][..]).prop_map(String::from),
    );
    let all = (
        weighted(0.9),
        weighted(0.4),
        zones(),
        vec(flag, 0..4),
        vec(change(), 0..4),
    );
    all.prop_map(|(memory_backed, discard, zones, flags, changes)| {
        let mut all = vec![("size", "4".to_string())];
        all.extend(zones);
        all.extend(memory_backed.then(|| ("memory_backed", "1".into())));
        all.extend(discard.then(|| ("discard", "1".into())));
        all.extend(flags);
        all.extend(changes);
        all
    })
}
