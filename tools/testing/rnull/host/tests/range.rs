// SPDX-License-Identifier: GPL-2.0

//! Checks that ranges of bytes are divided into regions, blocks and pages without a gap, with the
//! right sectors.

extern crate self as kernel;

#[path = "../../../../../drivers/block/rnull/range.rs"]
mod range;
#[path = "../../../../../drivers/block/rnull/sectors.rs"]
mod sectors;

/// What the files take from the kernel.
pub mod page {
    pub const PAGE_SHIFT: usize = 12;
    pub const PAGE_SIZE: usize = 4096;
}

pub mod prelude {
    #[derive(Debug, PartialEq)]
    pub struct Error;
    pub const EINVAL: Error = Error;
    pub type Result<T = ()> = core::result::Result<T, Error>;
}

use proptest::prelude::*;
use range::{ByteRange, REGION_PAGES};
use sectors::{Sectors, GRANULE};

const PAGE: u64 = 4096;
const REGION: u64 = REGION_PAGES as u64 * PAGE;

/// A start that is near a border, or anywhere.
fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..1u64 << 20,
        (1u64 << 60) - 8192..(1 << 60) + (1 << 20),
        (1..1000u64, 0..3u64).prop_map(|(region, less)| region * REGION - less),
        (u64::MAX - (3 << 20))..u64::MAX - 900_000,
    ]
}

fn regions(start: u64, len: u64) -> Vec<ByteRange> {
    range::regions(start, len).unwrap().collect()
}

/// The first byte of a range, and the one behind the last.
fn ends(range: ByteRange) -> (u64, u64) {
    let first = range.page() as u64 * PAGE + range.offset() as u64;
    (first, first + range.len() as u64)
}

/// Checks that ranges follow each other from `at` to `end`, and that each is in one unit of so many
/// bytes, up to the end of that but for the last.
fn check(ranges: impl IntoIterator<Item = ByteRange>, at: u64, end: u64, unit: u64) {
    let mut at = at;
    for range in ranges {
        let (first, behind) = ends(range);
        assert_eq!(first, at);
        assert!(behind > first && behind <= end);
        assert_eq!(first / unit, (behind - 1) / unit);
        assert!(behind == end || behind % unit == 0);
        assert_eq!(range.last_page() as u64, (behind - 1) / PAGE);
        at = behind;
    }
    assert_eq!(at, end);
}

#[test]
fn no_bytes_are_in_no_region() {
    for at in [0, 1, 4096, REGION, u64::MAX] {
        assert!(regions(at, 0).is_empty());
        assert_eq!(ByteRange::in_page(at, 0), None);
    }
}

proptest! {
    #[test]
    fn blocks_take_a_power_of_two_of_pages(block in any::<u32>()) {
        let pages = range::block_pages(block);

        prop_assert!(pages.is_power_of_two());
        prop_assert!((1..=16).contains(&pages));
        prop_assert!(pages * 4096 >= block.min(65536) as usize);
        prop_assert!(pages == 1 || pages * 2048 < block as usize);
    }

    #[test]
    fn regions_follow_each_other(start in start(), len in 0..800_000u64) {
        check(regions(start, len), start, start + len, REGION);
    }

    #[test]
    fn pages_follow_each_other(start in start(), len in 1..800_000u64) {
        for range in regions(start, len) {
            let (first, end) = ends(range);
            check(range.parts(), first, end, PAGE);
            prop_assert_eq!(range.is_in_page(), range.parts().count() == 1);
            let whole = range.parts().take_while(|part| part.is_page()).count();
            prop_assert_eq!(range.whole_pages(), whole);
        }
    }

    #[test]
    fn blocks_follow_each_other(
        start in start(),
        len in 1..800_000u64,
        pages in (0..5u32).prop_map(|shift| 1usize << shift),
    ) {
        for range in regions(start, len) {
            let mut rest = range;
            let mut blocks = vec![];
            while !rest.is_empty() {
                prop_assert_eq!(rest.block(pages), rest.page() / pages * pages);
                blocks.push(rest.split_off_block(pages));
            }
            let (first, end) = ends(range);
            check(blocks, first, end, pages as u64 * PAGE);
        }
    }

    #[test]
    fn parts_divide(start in start(), len in 1..9000u64, first in 0..9000usize) {
        let range = regions(start, len)[0];
        let mut rest = range;
        let one = rest.split_off(first);

        prop_assert_eq!(one, range.first(first));
        prop_assert_eq!(one.len(), first.min(range.len()));
        prop_assert_eq!(one.len() + rest.len(), range.len());
        prop_assert_eq!((one.page(), one.offset()), (range.page(), range.offset()));
        if !rest.is_empty() {
            prop_assert_eq!(ends(rest), (ends(one).1, ends(range).1));
        }
    }

    #[test]
    fn what_is_skipped_ends_with_a_page(
        start in start(),
        len in 1..800_000u64,
        place: prop::sample::Index,
    ) {
        let range = regions(start, len)[0];
        let page = range.page() + place.index(range.last_page() - range.page() + 1);
        let mut rest = range;
        rest.skip_to(page);

        let first = ends(range).0.max(page as u64 * PAGE);
        prop_assert_eq!(ends(rest), (first, ends(range).1));
    }

    #[test]
    fn a_range_in_a_page_is_the_only_region(start in start(), len in 1..9000u32) {
        let pages = (start % PAGE + u64::from(len)).div_ceil(PAGE);

        match ByteRange::in_page(start, len) {
            Some(range) => prop_assert_eq!(&regions(start, len.into())[..], &[range]),
            None => prop_assert!(pages > 1),
        }
        prop_assert_eq!(ByteRange::in_page(start, len).is_some(), pages == 1);
    }

    #[test]
    fn sectors_are_those_of_the_bytes(start in 0..4096usize, len in 1..4097usize) {
        let len = len.min(4096 - start);
        let last = start + len - 1;
        let touched = Sectors::touched(start, len);
        let within = Sectors::within(start, len);

        for sector in 0..8 {
            let (first_byte, last_byte) = (sector * 512, sector * 512 + 511);
            let is_touched = start <= last_byte && first_byte <= last;
            let is_within = start <= first_byte && last_byte <= last;
            prop_assert_eq!(touched.bits() >> sector & 1 == 1, is_touched);
            prop_assert_eq!(within.bits() >> sector & 1 == 1, is_within);
        }
        prop_assert_eq!((touched.bits() | within.bits()) >> 8, 0);
    }

    #[test]
    fn sets_of_sectors(a in any::<usize>(), b in any::<usize>()) {
        let (x, y) = (Sectors::from_bits(a), Sectors::from_bits(b));

        prop_assert_eq!(x.bits(), a & 0xff);
        prop_assert_eq!(x.with(y).bits(), (a | b) & 0xff);
        prop_assert_eq!(x.without(y).bits(), a & !b & 0xff);
        prop_assert_eq!(x.without(x), Sectors::NONE);
        prop_assert_eq!(x.without(Sectors::ALL), Sectors::NONE);
        let union = x.bytes().fold(Sectors::NONE, |all, (at, len)| {
            assert_eq!(len, GRANULE);
            all.with(Sectors::within(at, len))
        });
        prop_assert_eq!(union, x);
    }

    #[test]
    fn runs_are_alike(bits in any::<usize>(), start in 0..4096usize, len in 1..4097usize) {
        let (set, end) = (Sectors::from_bits(bits), start + len.min(4096 - start));
        let has = |at: usize| bits >> (at / 512) & 1 == 1;
        let mut at = start;

        while at < end {
            let (run, is_in) = set.run(at, end - at);
            prop_assert!(run > 0 && at + run <= end);
            prop_assert!((at..at + run).all(|byte| has(byte) == is_in));
            at += run;
            prop_assert!(at == end || has(at) != is_in);
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused(start in (u64::MAX - 1000).., len in 1001..5000u64) {
        prop_assert!(range::regions(start, len).is_err());
    }
}
