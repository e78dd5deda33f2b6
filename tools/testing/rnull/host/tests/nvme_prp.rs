// SPDX-License-Identifier: GPL-2.0

//! Checks the pages that a controller is told of, against a list of all of them.

/// The driver's modules, which name each other by `super`.
#[path = "../../../../../drivers/block/rnvme"]
mod rnvme {
    pub mod data_pointer;
    pub mod prp;
}

use proptest::prelude::*;
use rnvme::{data_pointer::*, prp::*};

const PAGE: usize = PAGE_SIZE as usize;

/// Where the pages of the list are said to be.
const LIST: u64 = 0xabcd_e000;

/// The number of pages of a list that is as long as can be.
const MAX_LISTS: usize = 5;

/// The most pages of memory.
const MAX_PAGES: usize = (LIST_ENTRIES - 1) * MAX_LISTS + 2;

#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Unfit,
    NoMemory,
}

/// A list in memory of the test: the words of its pages, and of how many pages there is memory.
struct Memory {
    pages: Vec<Vec<u64>>,
    most: usize,
    /// The address of the first byte, as the list was told.
    first: u64,
    is_closed: bool,
}

impl Memory {
    fn new() -> Self {
        Self {
            pages: Vec::new(),
            most: MAX_LISTS,
            first: 0,
            is_closed: false,
        }
    }

    fn add(&mut self) -> Result<u64, Wrong> {
        if self.pages.len() == self.most {
            return Err(Wrong::NoMemory);
        }
        self.pages.push(Vec::new());
        Ok(LIST + (self.pages.len() as u64 - 1) * PAGE_SIZE)
    }
}

impl List for Memory {
    type Error = Wrong;

    fn begin(&mut self, first: u64) -> Result<u64, Wrong> {
        self.first = first;
        assert!(self.pages.is_empty(), "a command has one list");
        self.add()
    }

    fn push(&mut self, word: u64) -> bool {
        let is_closed = self.is_closed;
        match self.pages.last_mut() {
            Some(page) if page.len() < LIST_ENTRIES && !is_closed => page.push(word),
            _ => return false,
        }
        true
    }

    fn chain(&mut self) -> Result<(), Wrong> {
        assert!(!self.is_closed, "nothing follows");
        let next = self.add()?;
        let full = self.pages.iter_mut().rev().nth(1).unwrap();
        assert_eq!(full.len(), LIST_ENTRIES, "a page is full");
        let moved = std::mem::replace(&mut full[LIST_ENTRIES - 1], next);
        assert!(self.push(moved));
        Ok(())
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    fn unfit(&self) -> Wrong {
        Wrong::Unfit
    }
}

/// All pages of the ranges, the first from its first byte on.
fn pages(ranges: &[(u64, u32)]) -> Vec<u64> {
    let mut all = Vec::new();
    for &(address, bytes) in ranges {
        let end = address + u64::from(bytes);
        let first = address - address % PAGE_SIZE;
        all.extend((first..end).step_by(PAGE).map(|page| page.max(address)));
    }
    all
}

/// The pages that the controller finds, which knows how many there are.
fn found(data: DataPointer, list: &Memory, count: usize) -> Vec<u64> {
    assert!(!data.is_sgl);
    let mut all = vec![data.first];
    match count {
        1 => assert_eq!(data.second, 0),
        2 => all.push(data.second),
        _ => {
            let mut at = data.second;
            while all.len() < count {
                let page = &list.pages[((at - LIST) / PAGE_SIZE) as usize];
                let mut entries = page.iter().copied();
                let left = count - all.len();
                if left <= LIST_ENTRIES {
                    all.extend(entries.take(left));
                } else {
                    all.extend(entries.by_ref().take(LIST_ENTRIES - 1));
                    at = entries.next().unwrap();
                }
            }
        }
    }
    all
}

/// Ranges as the block layer makes them: only the first begins inside a page, only the last ends in
/// one.
fn ranges() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let middle = proptest::collection::vec((0u64..1 << 40, 1u32..400), 0..20);
    (
        0u64..1 << 40,
        0..PAGE_SIZE,
        1u32..40,
        middle,
        0..PAGE as u32,
    )
        .prop_map(|(page, offset, count, middle, less)| {
            let first = (
                page * PAGE_SIZE + offset,
                count * PAGE as u32 - offset as u32,
            );
            let middle = middle.into_iter();
            let rest = middle.map(|(page, count)| (page * PAGE_SIZE, count * PAGE as u32));
            let mut all: Vec<_> = std::iter::once(first).chain(rest).collect();
            let last = all.last_mut().unwrap();
            last.1 -= less.min(last.1 - 1);
            all
        })
}

proptest! {
    #[test]
    fn each_page_is_found(ranges in ranges()) {
        let all = pages(&ranges);
        let mut builder = Builder::new(Memory::new());
        let added = ranges.iter().try_for_each(|&(address, len)| builder.add(address, len));
        if all.len() > MAX_PAGES {
            prop_assert_eq!(added, Err(Wrong::Unfit));
        } else {
            prop_assert_eq!(added, Ok(()));
            let (data, list) = builder.finish();
            let has_list = !list.pages.is_empty();
            prop_assert_eq!(list.first, if has_list { all[0] } else { 0 });
            // Pages are counted, not where they are.
            let len = ranges.iter().map(|range| range.1).sum();
            let is_full = list.pages.last().is_some_and(|page| page.len() == LIST_ENTRIES);
            prop_assert_eq!(fills_list(all[0], len), is_full);
            prop_assert_eq!(found(data, &list, all.len()), all);
        }
    }

    #[test]
    fn any_ranges_do_no_harm(ranges in proptest::collection::vec(any::<(u64, u32)>(), 0..8)) {
        let mut builder = Builder::new(Memory::new());
        for (address, len) in ranges {
            // Pages may be too many, and ranges may overflow.
            if builder.add(address, len % (1 << 24)).is_err() {
                break;
            }
        }
    }

    #[test]
    fn ranges_with_gaps_are_unfit(page in 0u64..1 << 40, gap in 1..PAGE_SIZE) {
        for (first, second) in [
            ((page * PAGE_SIZE, gap as u32), (0, 4096)),
            ((page * PAGE_SIZE, 4096), (gap, 512)),
        ] {
            let mut builder = Builder::new(Memory::new());
            prop_assert_eq!(builder.add(first.0, first.1), Ok(()));
            prop_assert_eq!(builder.add(second.0, second.1), Err(Wrong::Unfit));
        }
    }
}

#[test]
fn the_longest_transfer_fits_wherever_it_begins() {
    for offset in [0, 4, 4092] {
        let mut builder = Builder::new(Memory::new());
        assert_eq!(builder.add(1 << 20 | offset, MAX_BYTES), Ok(()));
    }
    let mut builder = Builder::new(Memory::new());
    assert_eq!(
        builder.add(1 << 20 | 4, MAX_BYTES + 4096),
        Err(Wrong::Unfit)
    );
}

#[test]
fn a_list_is_full_with_the_last_entry_of_its_last_page() {
    let full = |page: u64, bytes: u64| fills_list(page, bytes as u32);
    for (pages, is_full) in [(2, false), (512, false), (513, true), (514, false)] {
        assert_eq!(full(0, pages * PAGE_SIZE), is_full);
        assert_eq!(full(4, pages * PAGE_SIZE - 4), is_full);
    }
    assert!(full(4, 512 * PAGE_SIZE));
    assert!(full(0, 512 * PAGE_SIZE + 1));
    assert!(full(0, (513 + 511) * PAGE_SIZE));
}

#[test]
fn no_memory_for_a_list_is_an_error() {
    let with = |most| {
        Builder::new(Memory {
            most,
            ..Memory::new()
        })
    };
    let mut builder = with(0);
    assert_eq!(builder.add(0, 3 * 4096), Err(Wrong::NoMemory));
    // Two pages need none.
    let mut builder = with(0);
    assert_eq!(builder.add(0, 2 * 4096), Ok(()));
    assert_eq!(
        builder.finish().0,
        DataPointer {
            first: 0,
            second: 4096,
            is_sgl: false
        }
    );
    let entries = LIST_ENTRIES as u32;
    let mut builder = with(1);
    assert_eq!(builder.add(0, (entries + 1) * 4096), Ok(()));
    assert_eq!(builder.add(0, 4096), Err(Wrong::NoMemory));
}

#[test]
fn the_last_page_of_all_is_a_page() {
    let mut builder = Builder::new(Memory::new());
    // The end would be 2^64.
    assert_eq!(builder.add(u64::MAX - 8191, 8192), Err(Wrong::Unfit));
    let mut builder = Builder::new(Memory::new());
    assert_eq!(builder.add(u64::MAX - 8191, 8191), Ok(()));
}
