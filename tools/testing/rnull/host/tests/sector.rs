// SPDX-License-Identifier: GPL-2.0

//! Checks that sums of sectors saturate where those of greater numbers would not fit.

#[path = "../../../../../rust/kernel/block/sector.rs"]
mod sector;

use proptest::prelude::*;
use sector::{Sector, Sectors};

/// Numbers of all sizes, those at the edges more often.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..1000u64,
        (u64::MAX - 1000)..,
        (0..64u32).prop_map(|shift| 1 << shift)
    ]
}

/// The number that fits.
fn fit(exact: i128) -> u64 {
    exact.clamp(0, i128::from(u64::MAX)) as u64
}

proptest! {
    #[test]
    fn sums_are_those_of_greater_numbers(a in number(), b in number()) {
        let (x, y) = (i128::from(a), i128::from(b));

        prop_assert_eq!((Sector(a) + Sectors(b)).0, fit(x + y));
        prop_assert_eq!((Sectors(a) + Sectors(b)).0, fit(x + y));
        prop_assert_eq!((Sector(a) - Sector(b)).0, fit(x - y));
        prop_assert_eq!((Sectors(a) - Sectors(b)).0, fit(x - y));
        let mut at = Sector(a);
        at += Sectors(b);
        prop_assert_eq!(at, Sector(a) + Sectors(b));
    }

    #[test]
    fn bytes_are_those_of_greater_numbers(a in number()) {
        let x = i128::from(a);

        prop_assert_eq!(Sector(a).bytes(), fit(x * 512));
        prop_assert_eq!(Sectors(a).bytes(), fit(x * 512));
        prop_assert_eq!(Sectors::from_bytes(a).0, a / 512);
        prop_assert_eq!(Sectors::from_mebibytes(a).0, fit(x * 2048));
        prop_assert_eq!(u64::from(Sectors(a).to_u32()), a.min(u32::MAX.into()));
    }

    #[test]
    fn there_and_back(start in 0..u64::MAX / 2, length in 0..u64::MAX / 2) {
        prop_assert_eq!(Sector(start) + Sectors(length) - Sector(start), Sectors(length));
    }
}
