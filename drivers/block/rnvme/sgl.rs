// SPDX-License-Identifier: GPL-2.0

//! The memory of a command as a scatter-gather list.
//!
//! Each range of memory has a descriptor of 16 bytes, wherever it begins and however long it is. A
//! command has room for one. If there are more, they are a list, which that of the command
//! describes.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

use super::data_pointer::{
    DataPointer,
    List, //
};
use core::mem::replace;

/// The most ranges of a command: as many as have descriptors in a page.
pub(crate) const MAX_RANGES: usize = 256;

/// The number of words of a descriptor.
pub(crate) const WORDS: usize = 2;

/// The type of a descriptor, where it is in the second word.
const DATA_BLOCK: u64 = 0x0 << 60;

/// See [`DATA_BLOCK`].
const LAST_SEGMENT: u64 = 0x3 << 60;

/// Returns the pointer of a command whose memory is a single range, which needs no list.
#[inline]
pub(crate) fn without_list(address: u64, bytes: u32) -> DataPointer {
    DataPointer {
        first: address,
        second: u64::from(bytes) | DATA_BLOCK,
        is_sgl: true,
    }
}

/// The pointer of a command whose memory is added range by range.
pub(crate) struct Builder<L> {
    /// The descriptor of the first range, or the address of the list.
    data: DataPointer,
    /// How many ranges were added.
    ranges: usize,
    list: L,
}

impl<L: List> Builder<L> {
    /// Begins with no memory.
    #[inline]
    pub(crate) fn new(list: L) -> Self {
        Self {
            data: DataPointer::default(),
            ranges: 0,
            list,
        }
    }

    /// Adds a range of memory.
    ///
    /// # Errors
    ///
    /// That of the list. More ranges than it has room for are unfit.
    #[inline]
    pub(crate) fn add(&mut self, address: u64, bytes: u32) -> Result<(), L::Error> {
        let block = without_list(address, bytes);
        let is_added = match self.ranges {
            0 => {
                self.data = block;
                true
            }
            1 => {
                let list = self.list.begin(self.data.first)?;
                let first = replace(&mut self.data.first, list);
                self.push(first, self.data.second) && self.push(block.first, block.second)
            }
            _ => self.push(block.first, block.second),
        };
        self.ranges += 1;
        is_added.then_some(()).ok_or_else(|| self.list.unfit())
    }

    #[inline]
    fn push(&mut self, first: u64, second: u64) -> bool {
        self.list.push(first) && self.list.push(second)
    }

    /// Returns the pointer, and the list.
    #[inline]
    pub(crate) fn finish(mut self) -> (DataPointer, L) {
        if self.ranges > 1 {
            let bytes = self.ranges * WORDS * size_of::<u64>();
            self.data.second = bytes as u64 | LAST_SEGMENT;
        }
        (self.data, self.list)
    }
}
