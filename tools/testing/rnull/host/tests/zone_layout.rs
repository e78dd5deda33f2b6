// SPDX-License-Identifier: GPL-2.0

//! Checks the division of a disk into zones, by walking over the disk.

#[path = "../../../../../drivers/block/rnull/zone_layout.rs"]
mod zone_layout;

use proptest::prelude::*;
use zone_layout::*;

const LARGE: u64 = 1 << 31;

/// A zone size, a capacity, and the length of a disk.
fn disk() -> impl Strategy<Value = (u64, u64, u64)> {
    let size = (0..32u32).prop_map(|shift| 1u64 << shift);
    (
        size,
        any::<prop::sample::Index>(),
        0..100u64,
        any::<prop::sample::Index>(),
    )
        .prop_map(|(size, capacity, zones, rest)| {
            let capacity = 1 + capacity.index(size as usize) as u64;
            (
                size,
                capacity,
                zones * size + rest.index(size as usize) as u64,
            )
        })
}

proptest! {
    #[test]
    fn zones_cover_the_disk((size, capacity, len) in disk(), wanted in 0..120u32) {
        let Some(layout) = ZoneLayout::new(len, size, capacity, 1000) else {
            prop_assert_eq!(len, 0);
            return Ok(());
        };
        let layout = layout.with_conventional(wanted);
        let mut at = 0;
        let mut sequential = 0;
        for number in 0..layout.count() {
            let zone = layout.zone(number).unwrap();
            let is_last = number + 1 == layout.count();
            prop_assert_eq!(zone.start, at);
            prop_assert!((1..=size).contains(&zone.len) && (is_last || zone.len == size));
            if number < wanted && !is_last {
                prop_assert!(number < layout.conventional());
                prop_assert_eq!(zone.capacity, zone.len);
            } else {
                prop_assert!(number >= layout.conventional());
                prop_assert_eq!(zone.capacity, capacity.min(zone.len));
                sequential += 1;
            }
            for sector in [at, at + zone.len / 2, at + zone.len - 1] {
                prop_assert_eq!(layout.number(sector), Some(number));
                prop_assert_eq!(layout.offset(sector), sector - at);
            }
            at += zone.len;
        }
        prop_assert_eq!(at, len);
        prop_assert_eq!(layout.sequential(), sequential);
        prop_assert_eq!(layout.size(), size);
        prop_assert_eq!(layout.zone(layout.count()), None);
        // The last zone may be shorter than the others, but what is behind it has no number, or
        // that of a zone that has not all sectors.
        prop_assert_eq!(layout.number(u64::from(layout.count()) * size), None);
    }

    #[test]
    fn any_numbers_do(disk: u64, size: u64, capacity: u64, most: u32, n: u32, at: u64) {
        for size in [size, size.checked_next_power_of_two().unwrap_or(1), 1 << (size % 64)] {
            let Some(layout) = ZoneLayout::new(disk, size, capacity % (size + 1), most) else {
                continue;
            };
            prop_assert!(size.is_power_of_two() && size <= LARGE && layout.count() <= most);
            let layout = layout.with_conventional(n);
            prop_assert!(layout.sequential() >= 1);
            for number in [0, n, layout.count() - 1, layout.count(), u32::MAX] {
                let zone = layout.zone(number);
                prop_assert_eq!(zone.is_some(), number < layout.count());
                prop_assert!(zone.is_none_or(|zone| zone.start + zone.len <= disk));
            }
            prop_assert!(layout.number(at).is_none_or(|number| number < layout.count()));
        }
    }
}

#[test]
fn what_cannot_be_is_rejected() {
    let made = |disk, size, capacity, most| ZoneLayout::new(disk, size, capacity, most).is_some();
    assert!(made(100, 64, 64, 2));
    // No zone size, or none that the block layer takes.
    assert!(!made(100, 0, 0, 9) && !made(100, 48, 48, 9) && !made(1 << 40, 1 << 32, 1, 9));
    assert!(made(1 << 40, LARGE, LARGE, 1 << 9));
    // No capacity, or too much.
    assert!(!made(100, 64, 0, 9) && !made(100, 64, 65, 9));
    // No zone, or too many.
    assert!(!made(0, 64, 64, 9) && !made(129, 64, 64, 2) && made(128, 64, 64, 2));
    assert!(!made(u64::MAX, 1, 1, u32::MAX));
}
