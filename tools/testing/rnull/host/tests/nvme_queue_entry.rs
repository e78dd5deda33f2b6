// SPDX-License-Identifier: GPL-2.0

//! Checks the entries of queues, byte by byte.

#[path = "../../../../../drivers/block/rnvme/queue_entry.rs"]
mod queue_entry;

use proptest::prelude::*;
use queue_entry::*;

proptest! {
    #[test]
    fn completions(result: u32, high: u32, queue: (u16, u16), cid: u16, phase: bool, status in 0..1u16 << 15) {
        let last = status << 1 | u16::from(phase);
        let bytes = [
            &result.to_le_bytes()[..],
            &high.to_le_bytes(),
            &queue.0.to_le_bytes(),
            &queue.1.to_le_bytes(),
            &cid.to_le_bytes(),
            &last.to_le_bytes(),
        ]
        .concat();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let completion = Completion::parse([word(0), word(8)]);
        prop_assert_eq!((completion.cid(), completion.result()), (cid, result));
        prop_assert_eq!(completion.result_high(), high);
        prop_assert_eq!(word(8) & Completion::PHASE != 0, phase);
        prop_assert_eq!(completion.status().code(), status & 0x7ff);
        prop_assert_eq!(completion.status().is_success(), status & 0x7ff == 0);
    }

    /// A device writes entries of a queue that goes round, as a model has them.
    #[test]
    fn places_go_round(entries in 2..=4096usize, steps in 0..20_000usize) {
        let mut memory = vec![0; entries];
        let mut place = Place::FIRST;
        for step in 0..steps {
            let at = step % entries;
            prop_assert_eq!(usize::from(place.index()), at);
            prop_assert!(!place.is_new(memory[at]));
            memory[at] = !memory[at] & Completion::PHASE | step as u64 & 0xffff_ffff;
            prop_assert!(place.is_new(memory[at]));
            prop_assert_eq!(Place::from_word(place.word()), place);
            place = place.next(entries);
        }
    }

    #[test]
    fn a_failure_says_whether_to_try_again(status in 0..1u16 << 15) {
        let parsed = Completion::parse([0, u64::from(status) << 49]).status();
        prop_assert_eq!(parsed.failure().is_none(), parsed.is_success());
        prop_assert_eq!(parsed.is_final(), status >> 14 == 1);
        prop_assert_eq!(parsed.retry_delay(), usize::from(status >> 11) & 3);
    }
}

#[test]
fn failures_have_classes() {
    let class = |status| CommandStatus(status).failure();
    // The field DNR, and those without a meaning here, make no difference.
    for rest in [0, 1 << 14, 3 << 12, 1 << 11] {
        assert_eq!(class(rest), None);
        assert_eq!(class(rest | 0x001), Some(Failure::NotSupported));
        assert_eq!(class(rest | 0x080), Some(Failure::Target));
        assert_eq!(class(rest | 0x081), Some(Failure::NoSpace));
        assert_eq!(class(rest | 0x083), Some(Failure::Reserved));
        assert_eq!(class(rest | 0x281), Some(Failure::Medium));
        assert_eq!(class(rest | 0x282), Some(Failure::Protection));
        assert_eq!(class(rest | 0x370), Some(Failure::Transport));
        assert_eq!(class(rest | 0x006), Some(Failure::Other));
        // A type that is reserved.
        assert_eq!(class(rest | 0x401), Some(Failure::Other));
    }
}
