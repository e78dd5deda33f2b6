// SPDX-License-Identifier: GPL-2.0

//! Checks that a limit on bandwidth is kept, whatever the requests.

#[path = "../../../../../drivers/block/rnull/slow_path/token_bucket.rs"]
mod token_bucket;

use proptest::prelude::*;
use token_bucket::*;

/// Bytes for one MiB per second and tick.
const TICK: u64 = 20971;

proptest! {
    /// Moves all requests one after the other, waiting for ticks, and counts both.
    #[test]
    fn the_limit_is_kept(
        mbps in 1..40961u32,
        requests in prop::collection::vec(prop_oneof![0..70_000u32, any::<u32>()], 1..50),
    ) {
        let mut bucket = TokenBucket::new(mbps);
        let (mut ticks, mut moved, mut timer_active) = (0u64, 0u64, false);
        let size = u64::from(mbps) * TICK;
        for bytes in requests {
            while !bucket.take(bytes) {
                // A request that waits, waits for the timer.
                prop_assert!(timer_active);
                // A long debt is paid at once here.
                ticks += 1;
                timer_active = bucket.refill();
                prop_assert!(ticks < 20_000_000);
            }
            // Before the last request no more had passed than the ticks were worth.
            prop_assert!(moved <= (ticks + 1) * size);
            moved += u64::from(bytes);
            timer_active |= bucket.claim_timer();
        }
        // No request waited when there was no debt.
        prop_assert!(ticks * size <= moved + size);
        // At last the bucket is full again, and the timer stops.
        for _ in 0..=moved / size + 1 {
            timer_active = bucket.refill();
        }
        prop_assert!(!timer_active);
        prop_assert!(bucket.take(1) && bucket.claim_timer());
    }

    #[test]
    fn without_a_limit_all_pass(mbps in 1..40961u32, debt: u32, requests: Vec<u32>) {
        let mut bucket = TokenBucket::new(mbps);
        bucket.take(debt);
        bucket.disable();
        for bytes in requests {
            prop_assert!(bucket.take(bytes));
            bucket.refill();
        }
    }
}
