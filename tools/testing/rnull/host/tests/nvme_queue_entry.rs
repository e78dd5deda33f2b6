// SPDX-License-Identifier: GPL-2.0

//! Checks the entries of queues, byte by byte.

#[path = "../../../../../drivers/block/rnvme/queue_entry.rs"]
mod queue_entry;

use proptest::prelude::*;
use queue_entry::*;

/// The bytes of an entry, as they are in memory.
fn in_memory(entry: &[u64]) -> Vec<u8> {
    entry.iter().flat_map(|word| word.to_le_bytes()).collect()
}

proptest! {
    #[test]
    fn identify(cid: u16, to: u64, nsid: u32) {
        for (what, cns, nsid) in [
            (Identify::Namespace(nsid), 0, nsid),
            (Identify::Controller, 1, 0),
            (Identify::ActiveList(nsid), 2, nsid),
            (Identify::Descriptors(nsid), 3, nsid),
        ] {
            let mut expected = vec![0; 64];
            expected[0] = 6;
            expected[2..4].copy_from_slice(&cid.to_le_bytes());
            expected[4..8].copy_from_slice(&nsid.to_le_bytes());
            expected[24..32].copy_from_slice(&to.to_le_bytes());
            expected[40] = cns;
            prop_assert_eq!(in_memory(&what.entry(cid, to)), expected);
        }
    }

    #[test]
    fn completions(result: u32, queue: (u16, u16), cid: u16, phase: bool, status in 0..1u16 << 15) {
        let last = status << 1 | u16::from(phase);
        let bytes = [
            &result.to_le_bytes()[..],
            &[0; 4],
            &queue.0.to_le_bytes(),
            &queue.1.to_le_bytes(),
            &cid.to_le_bytes(),
            &last.to_le_bytes(),
        ]
        .concat();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let completion = Completion::parse([word(0), word(8)]);
        prop_assert_eq!((completion.cid, completion.result), (cid, result));
        prop_assert_eq!(Completion::phase(word(8)), phase);
        prop_assert_eq!(completion.status.code(), status & 0x7ff);
        prop_assert_eq!(completion.status.is_success(), status & 0x7ff == 0);
    }
}
