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

/// A list in memory of the test; [`None`] if there is no memory for one.
struct Memory(Option<Vec<Option<u64>>>);

impl Memory {
    fn new() -> Self {
        Self(Some(Vec::new()))
    }
}

impl List for Memory {
    type Error = &'static str;

    fn begin(&mut self) -> Result<u64, &'static str> {
        let list = self.0.as_mut().ok_or("no memory")?;
        assert!(list.is_empty(), "a command has one list");
        list.resize(512, None);
        Ok(LIST)
    }

    fn chain(&mut self) -> Result<(), &'static str> {
        panic!("a list is one page")
    }

    fn set(&mut self, index: usize, word: u64) -> Result<(), &'static str> {
        let at = &mut self.0.as_mut().unwrap()[index];
        assert!(at.is_none(), "a word is set once");
        *at = Some(word);
        Ok(())
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
            let words: Vec<_> = list
                .0
                .as_ref()
                .unwrap()
                .iter()
                .map_while(|it| *it)
                .collect();
            assert_eq!(words.len() * 8, len as usize);
            let descriptor = |words: &[u64]| match parse(words[0], words[1]) {
                (address, len, 0x00) => (address, len),
                other => panic!("{other:?}"),
            };
            words.chunks(WORDS).map(descriptor).collect()
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn each_range_is_found(ranges in proptest::collection::vec(any::<(u64, u32)>(), 1..300)) {
        let mut builder = Builder::new(Memory::new());
        let added = ranges.iter().try_for_each(|&(address, len)| builder.add(address, len));
        if ranges.len() > MAX_RANGES {
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
    let mut builder = Builder::new(Memory(None));
    assert_eq!(builder.add(5, 7), Ok(()));
    assert_eq!(builder.add(50, 7), Err("no memory"));
}

#[test]
fn no_memory_is_no_list() {
    let (data, _) = Builder::new(Memory(None)).finish();
    assert_eq!(data, DataPointer::default());
}
