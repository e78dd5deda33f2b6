// SPDX-License-Identifier: GPL-2.0

//! The settings of a device, as it begins, as it changes.

use proptest::{collection::vec, prelude::*, sample::select};

/// Names with their values, in the order in which they are set.
pub type Settings = Vec<(&'static str, String)>;

/// The attributes that may be changed while operations go on, each with texts that null_blk
/// survives.
pub fn change() -> impl Strategy<Value = (&'static str, String)> {
    let number = |values: &'static [u64]| select(values).prop_map(|n| n.to_string());
    let flag = select(&["0", "1", "y", "N", "2", "\\e"][..]).prop_map(String::from);
    let odd = select(&["abc", "-1", "\\s1", "0x4\\n", "99999999999999999999", "\\e"][..]);
    prop_oneof![
        4 => (select(&["rotational", "no_sched", "badblocks_once", "badblocks_partial_io", "fua", "blocking", "discard"][..]), flag),
        2 => (Just("submit_queues"), number(&[0, 1, 2, 3, 4, 5])),
        2 => (Just("poll_queues"), number(&[0, 1, 2])),
        // On a machine with one node, one queue and any node.
        1 => (Just("use_per_node_hctx"), number(&[0, 1])),
        1 => (Just("home_node"), number(&[0, u32::MAX as u64])),
        1 => (Just("irqmode"), number(&[0, 1, 2, 3])),
        1 => (Just("queue_mode"), number(&[0, 1, 2, 7])),
        1 => (Just("hw_queue_depth"), number(&[0, 1, 2, 64, 20000])),
        // What more than 128 pages take is divided by where these pages are, too.
        1 => (Just("max_sectors"), number(&[0, 128, 130, 255, 900])),
        // Smaller than what is written, or larger; what is beyond the end stays, for later.
        2 => (Just("size"), number(&[0, 1, 2, 3, 4])),
        1 => (Just("completion_nsec"), number(&[0, 1, 1000])),
        // Never back to 0: null_blk looks for a timer then that it has not (defect 1). More than is asked
        // for in the time of a tick.
        1 => (Just("mbps"), number(&[5000, 40960, 99999])),
        // Never back to 0: null_blk has its cache still then, and may flush it for ever (defect 1).
        1 => (Just("cache_size"), number(&[1, 2])),
        1 => (select(&["size", "submit_queues", "irqmode", "hw_queue_depth", "completion_nsec"][..]), odd.prop_map(String::from)),
    ]
}

/// The parameters of a driver whose devices share their tags, unless they are told otherwise.
pub fn sharing() -> impl Strategy<Value = Settings> {
    let depth = select(&[1u64, 2, 3, 8, 64][..]);
    let flags = (any::<bool>(), any::<bool>());
    (1..=4u64, 0..=3u64, depth, flags).prop_map(|(submit, poll, depth, (bitmap, plain))| {
        let flag = |flag: bool| u64::from(flag);
        // Blocking, lest null_blk sleeps where it must not (defect 6).
        let all = [
            ("shared_tags", 1),
            ("blocking", 1),
            ("submit_queues", submit),
            ("poll_queues", poll),
            ("hw_queue_depth", depth),
            ("shared_tag_bitmap", flag(bitmap)),
            ("no_sched", flag(plain)),
        ];
        all.map(|(name, value)| (name, value.to_string())).into()
    })
}

/// The settings with which a device begins, besides the size of its blocks.
pub fn beginning() -> impl Strategy<Value = Settings> {
    let one = |name: &'static str| (Just(name), select(&["1", "0"][..]).prop_map(String::from));
    let cache = (
        Just("cache_size"),
        select(&["1", "0"][..]).prop_map(String::from),
    );
    (
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.4),
        vec(prop_oneof![2 => one("discard"), 1 => one("virt_boundary"), 1 => one("shared_tag_bitmap"), 1 => cache], 0..4),
        vec(change(), 0..4),
    )
        .prop_map(|(backed, discard, more, changes)| {
            let mut all = vec![("size", "4".to_string())];
            all.extend(backed.then(|| ("memory_backed", "1".into())));
            all.extend(discard.then(|| ("discard", "1".into())));
            all.extend(more);
            all.extend(changes);
            all
        })
}
