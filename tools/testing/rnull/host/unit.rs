// SPDX-License-Identifier: GPL-2.0

//! Checks that ranges of bytes are divided into units, then pages, without a gap.

#[path = "../../../../rust/kernel/page_store/unit.rs"]
mod unit;

/// What the file takes from the kernel.
mod page {
    pub const PAGE_SHIFT: usize = 12;
    pub const PAGE_SIZE: usize = 4096;
}

mod prelude {
    #[derive(Debug, PartialEq)]
    pub struct Error;
    pub const EINVAL: Error = Error;
    pub type Result<T = ()> = core::result::Result<T, Error>;
}

use proptest::prelude::*;
use unit::Unit;

fn bytes(unit: Unit) -> u64 {
    unit.pages() as u64 * 4096
}

proptest! {
    #[test]
    fn a_unit_holds_a_block(block in any::<u32>()) {
        let unit = Unit::for_blocks(block);

        let block = u64::from(block);

        prop_assert!(bytes(unit).is_power_of_two());
        prop_assert!((4096..=65536).contains(&bytes(unit)));
        prop_assert!(bytes(unit) >= block.min(65536));
        prop_assert!(bytes(unit) == 4096 || bytes(unit) < block * 2);
        prop_assert_eq!(u64::from(unit.mask()), bytes(unit) - 1);
        prop_assert_eq!(Unit::from_mask(unit.mask()).pages(), unit.pages());
    }

    #[test]
    fn parts_follow_each_other(
        block in (9..17u32).prop_map(|shift| 1 << shift),
        start in prop_oneof![0..1u64 << 20, (1u64 << 60)..(1 << 60) + (1 << 20)],
        len in 0..400_000usize,
    ) {
        let unit = Unit::for_blocks(block);
        let mut at = start;

        for span in unit.spans(start, len).unwrap() {
            let first = at / bytes(unit);
            let begin = at;

            prop_assert!(span.len() > 0);
            prop_assert_eq!(span.begins_node(), span.first % 64 == 0);
            prop_assert_eq!(span.first as u64 * 4096, first * bytes(unit));
            for part in span.parts() {
                prop_assert!(part.len() > 0 && part.offset() + part.len() <= 4096);
                prop_assert_eq!(part.page() as u64 * 4096 + part.offset() as u64, at);
                at += part.len() as u64;
            }
            prop_assert_eq!(at - begin, span.len() as u64);
            prop_assert_eq!((at - 1) / bytes(unit), first);
        }
        prop_assert_eq!(at, start + len as u64);
    }

    #[test]
    fn what_cannot_be_counted_is_refused(start in (u64::MAX - 1000).., len in 1001..5000usize) {
        prop_assert!(Unit::for_blocks(4096).spans(start, len).is_err());
    }
}
