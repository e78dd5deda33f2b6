// SPDX-License-Identifier: GPL-2.0

//! Checks the scatter-gather lists that a controller is told of.

/// The driver's modules, which name each other by `super`.
#[path = "../../../../../drivers/block/rnvme"]
mod rnvme {
    pub mod data_pointer;
    pub mod sgl;
}

use proptest::prelude::*;
use rnvme::{data_pointer::*, sgl::*};

/// Where the list is said to be.
const LIST: u64 = 0xabcd_e000;

/// A list in memory of the test.
struct Memory {
    words: Vec<u64>,
    /// How many words there is room for, once the list has begun.
    room: usize,
    most: usize,
}

impl Memory {
    /// Has room for a list of so many words; for no list if they are none.
    fn of(most: usize) -> Self {
        Self {
            words: Vec::new(),
            room: 0,
            most,
        }
    }
}

impl List for Memory {
    type Error = &'static str;

    fn begin(&mut self, _: u64) -> Result<u64, &'static str> {
        assert!(self.words.is_empty(), "a command has one list");
        self.room = self.most;
        (self.room > 0).then_some(LIST).ok_or("no memory")
    }

    fn push(&mut self, word: u64) -> bool {
        let has_room = self.words.len() < self.room;
        if has_room {
            self.words.push(word);
        }
        has_room
    }

    fn chain(&mut self) -> Result<(), &'static str> {
        panic!("a list is one page")
    }

    fn close(&mut self) {
        panic!("any range can follow")
    }

    fn unfit(&self) -> &'static str {
        "unfit"
    }
}

/// A descriptor, as the specification has it: address, length, three bytes of nothing, type.
fn parse(first: u64, second: u64) -> (u64, u32, u8) {
    let bytes = second.to_le_bytes();
    assert_eq!(bytes[4..7], [0; 3]);
    (first, second as u32, bytes[7])
}

/// The ranges that the controller finds.
fn found(data: DataPointer, list: &Memory) -> Vec<(u64, u32)> {
    assert!(data.is_sgl);
    match parse(data.first, data.second) {
        (address, len, 0x00) => vec![(address, len)],
        (LIST, len, 0x30) => {
            assert_eq!(list.words.len() * 8, len as usize);
            let descriptor = |words: &[u64]| match parse(words[0], words[1]) {
                (address, len, 0x00) => (address, len),
                other => panic!("{other:?}"),
            };
            list.words.chunks(WORDS).map(descriptor).collect()
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn each_range_is_found(
        ranges in proptest::collection::vec(any::<(u64, u32)>(), 1..300),
        most in prop::sample::select(&[16, MAX_RANGES]),
    ) {
        let mut builder = Builder::new(Memory::of(most * WORDS));
        let added = ranges.iter().try_for_each(|&(address, len)| builder.add(address, len));
        if ranges.len() > most {
            prop_assert_eq!(added, Err("unfit"));
        } else {
            prop_assert_eq!(added, Ok(()));
            let (data, list) = builder.finish();
            prop_assert_eq!(found(data, &list), ranges);
        }
    }
}

#[test]
fn a_single_range_needs_no_list() {
    let mut builder = Builder::new(Memory::of(0));
    assert_eq!(builder.add(5, 7), Ok(()));
    assert_eq!(builder.add(50, 7), Err("no memory"));
}

#[test]
fn no_memory_is_no_list() {
    let (data, _) = Builder::new(Memory::of(0)).finish();
    assert_eq!(data, DataPointer::default());
}
