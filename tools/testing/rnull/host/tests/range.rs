// SPDX-License-Identifier: GPL-2.0

//! Checks that ranges of bytes are divided into pages without a gap, with the right sectors.

#[path = "../../../../../rust/kernel/page_store/part.rs"]
mod part;
#[path = "../../../../../rust/kernel/page_store/range.rs"]
mod range;
#[path = "../../../../../rust/kernel/page_store/sectors.rs"]
mod sectors;

/// What the files take from the kernel.
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
use range::{Chunk, LEAF_PAGES};
use sectors::Sectors;

const LEAF_BYTES: u64 = LEAF_PAGES as u64 * 4096;

/// A start that is near a border, or anywhere.
fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..1u64 << 20,
        (1u64 << 60) - 8192..(1 << 60) + (1 << 20),
        (1..1000u64, 0..3u64).prop_map(|(node, less)| node * LEAF_BYTES - less),
    ]
}

#[test]
fn the_last_leaf_has_none_behind_it() {
    let last = usize::MAX - (LEAF_PAGES - 1);

    for page in [last, last + 1, usize::MAX] {
        assert_eq!(range::next_leaf(page), None);
        assert_eq!(range::of_leaf(page).count(), usize::MAX - page + 1);
    }
    assert_eq!(range::next_leaf(last - 1), Some(last));
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
    fn chunks_follow_each_other(start in start(), len in 0..800_000u64) {
        let end = range::end(start, len).unwrap();
        let mut at = start;

        while at < end {
            let chunk = Chunk::new(at, end);

            prop_assert_eq!(chunk.page() as u64, at / 4096);
            prop_assert!(chunk.left() > 0);
            let last = at + chunk.left() as u64 - 1;
            prop_assert_eq!(last / LEAF_BYTES, at / LEAF_BYTES);
            prop_assert!(last == end - 1 || (last + 1) % LEAF_BYTES == 0);
            for part in chunk.parts() {
                prop_assert!(part.len() > 0 && part.offset() + part.len() <= 4096);
                prop_assert_eq!(part.page() as u64 * 4096 + part.offset() as u64, at);
                prop_assert_eq!(part.is_page(), part.len() == 4096);
                at += part.len() as u64;
            }
            prop_assert_eq!(at, last + 1);
        }
        prop_assert_eq!(at, end);
    }

    #[test]
    fn blocks_follow_each_other(
        start in start(),
        len in 1..800_000u64,
        pages in (0..5u32).prop_map(|shift| 1usize << shift),
    ) {
        let mut chunk = Chunk::new(start, start + len);
        let mut at = start;

        while chunk.left() > 0 {
            let block = chunk.block(pages);
            let bytes = pages as u64 * 4096;

            prop_assert_eq!(block.page(), chunk.page());
            let last = at + block.left() as u64 - 1;
            prop_assert_eq!(last / bytes, at / bytes);
            prop_assert!(block.left() == chunk.left() || (last + 1) % bytes == 0);
            for part in block.parts() {
                prop_assert_eq!(chunk.part(), Some(part));
                chunk.pass(part);
            }
            at = last + 1;
        }
        prop_assert_eq!(chunk.part(), None);
    }

    #[test]
    fn parts_divide(start in start(), len in 1..5000u64, first in 0..5000usize) {
        let part = Chunk::new(start, start + len).part().unwrap();
        let (one, two) = part.split(first);

        prop_assert_eq!(one.len(), first.min(part.len()));
        prop_assert_eq!(one.len() + two.len(), part.len());
        prop_assert_eq!((one.page(), one.offset()), (part.page(), part.offset()));
        // Where nothing is, is of no account.
        if two.len() > 0 {
            prop_assert_eq!((two.page(), two.offset()), (part.page(), part.offset() + one.len()));
        }
    }

    #[test]
    fn sectors_are_those_of_the_bytes(start in 0..4096u64, len in 1..4096u64) {
        let part = Chunk::new(start, start + len).part().unwrap();
        let last = part.offset() + part.len() - 1;

        for sector in 0..8 {
            let (first_byte, last_byte) = (sector * 512, sector * 512 + 511);
            let touched = part.offset() <= last_byte && first_byte <= last;
            let covered = part.offset() <= first_byte && last_byte <= last;
            prop_assert_eq!(part.touched().bits() >> sector & 1 == 1, touched);
            prop_assert_eq!(part.covered().bits() >> sector & 1 == 1, covered);
        }
        prop_assert_eq!(part.touched().bits() >> 8, 0);
    }

    #[test]
    fn sets_of_sectors(a in any::<usize>(), b in any::<usize>()) {
        let (x, y) = (Sectors::from_bits(a), Sectors::from_bits(b));

        prop_assert_eq!(x.bits(), a & 0xff);
        prop_assert_eq!(x.with(y).bits(), (a | b) & 0xff);
        prop_assert_eq!(x.without(y).bits(), a & !b & 0xff);
        prop_assert!(x.without(x).is_empty());
        prop_assert_eq!(x.without(Sectors::ALL), Sectors::from_bits(0));
    }

    #[test]
    fn what_cannot_be_counted_is_refused(start in (u64::MAX - 1000).., len in 1001..5000u64) {
        prop_assert!(range::end(start, len).is_err());
    }
}
