// SPDX-License-Identifier: GPL-2.0

//! Checks how much of a request comes before a bad sector, by trying each sector.

#[path = "../../../../../drivers/block/rnull/slow_path/partial_io.rs"]
mod partial_io;

use partial_io::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn only_whole_blocks_without_a_bad_sector(
        block in (0..8u32).prop_map(|shift| 1u64 << shift),
        first in 0..1000u64,
        length in 1..64u64,
        place: prop::sample::Index,
    ) {
        let at = first * block;
        // A bad range may begin before the request.
        let bad = place.index((at + length * block) as usize) as u64;
        let good = (at..at + length * block)
            .step_by(block as usize)
            .take_while(|start| !(*start..start + block).contains(&bad) && *start < bad)
            .count() as u64;
        prop_assert_eq!(sectors_before(at, bad, block), good * block);
    }

    #[test]
    fn never_more_than_up_to_the_bad_one(at: u64, bad: u64, shift in 0..8u32) {
        prop_assert!(sectors_before(at, bad, 1 << shift) <= bad.saturating_sub(at));
    }
}
