// SPDX-License-Identifier: GPL-2.0

//! The memory of a command as pages, each with a PRP entry (physical region page).
//!
//! A command has room for two. The first is the address of the first byte. The second is that of
//! the second page, or of a list of all pages from the second on. A list consists of pages, too:
//! the last entry of each but the last is the address of the next.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

use super::data_pointer::{
    DataPointer,
    List, //
};
use core::mem::replace;

/// The size of a page of the controller.
pub(crate) const PAGE_SIZE: u64 = 4096;

/// The number of entries of a page of a list.
pub(crate) const LIST_ENTRIES: usize = 512;

/// The most pages of a list.
const MAX_LISTS: usize = 5;

/// The most bytes that a command can move wherever they begin: the pages of all lists, as the first
/// page may consist of a single byte.
pub(crate) const MAX_BYTES: u32 = ((LIST_ENTRIES - 1) * MAX_LISTS + 1) as u32 * PAGE_SIZE as u32;

/// Returns the pointer of a command whose memory is a single range of at most two pages, which
/// needs no list; [`None`] if there are more pages.
#[inline]
pub(crate) fn without_list(address: u64, bytes: u32) -> Option<DataPointer> {
    let offset = address % PAGE_SIZE;
    let end = offset + u64::from(bytes);
    let second = match end {
        ..=PAGE_SIZE => 0,
        _ => (address - offset).wrapping_add(PAGE_SIZE),
    };
    (end <= 2 * PAGE_SIZE).then_some(DataPointer {
        first: address,
        second,
        is_sgl: false,
    })
}

/// Returns whether the list of so many bytes, the first of which has this address, fills its last
/// page.
///
/// The last entry of such a page leads to memory. A controller that moves more than there is takes
/// that entry for the address of another page of the list.
pub(crate) fn fills_list(address: u64, bytes: u32) -> bool {
    let pages = (address % PAGE_SIZE + u64::from(bytes)).div_ceil(PAGE_SIZE);
    let lists = LIST_ENTRIES as u64 - 1;
    // The first page is in no list. Each page of a list but the last has an entry less for memory.
    pages > 2 && (pages - 1) % lists == 1
}

/// The entries of a command whose memory is added range by range.
pub(crate) struct Builder<L> {
    first: u64,
    second: u64,
    /// How many pages were added before there was a list: at most two.
    pages: usize,
    /// How many pages the list has.
    lists: usize,
    /// Whether the last range has not ended with a page.
    is_ended: bool,
    list: L,
}

impl<L: List> Builder<L> {
    /// Begins with no memory.
    #[inline]
    pub(crate) fn new(list: L) -> Self {
        Self {
            first: 0,
            second: 0,
            pages: 0,
            lists: 0,
            is_ended: false,
            list,
        }
    }

    /// Adds a range of memory.
    ///
    /// # Errors
    ///
    /// That of the list. All ranges but the first begin at a page, all but the last end at one;
    /// otherwise they are unfit, and so are more pages than fit into the lists.
    #[inline]
    pub(crate) fn add(&mut self, address: u64, bytes: u32) -> Result<(), L::Error> {
        // The most frequent case: one of many pages, in a list that has begun.
        let is_page = u64::from(bytes) == PAGE_SIZE && address % PAGE_SIZE == 0;
        if is_page && self.list.push(address) {
            return Ok(());
        }
        self.add_pages(address, bytes.into())
    }

    #[inline(never)]
    fn add_pages(&mut self, address: u64, len: u64) -> Result<(), L::Error> {
        let offset = address % PAGE_SIZE;
        let is_joined = self.pages == 0 || (offset == 0 && !self.is_ended);
        let Some(end) = address.checked_add(len).filter(|_| is_joined && len > 0) else {
            return Err(self.list.unfit());
        };
        self.add_page(address)?;
        let mut page = address - offset;
        for _ in 1..(offset + len).div_ceil(PAGE_SIZE) {
            page += PAGE_SIZE;
            if !self.list.push(page) {
                self.add_page(page)?;
            }
        }
        if end % PAGE_SIZE != 0 {
            self.is_ended = true;
            self.list.close();
        }
        Ok(())
    }

    /// Adds a page. The caller says which one is the last.
    fn add_page(&mut self, page: u64) -> Result<(), L::Error> {
        match (self.pages, self.lists) {
            (0, _) => {
                self.first = page;
                self.pages = 1;
                return Ok(());
            }
            (1, _) => {
                self.second = page;
                self.pages = 2;
                return Ok(());
            }
            (_, 0) => {
                let list = self.list.begin(self.first)?;
                let second = replace(&mut self.second, list);
                self.lists = 1;
                if !self.list.push(second) {
                    return Err(self.list.unfit());
                }
            }
            _ if self.list.push(page) => return Ok(()),
            // The last entry makes place for the address of the next page of the list.
            (_, 1..MAX_LISTS) => {
                self.list.chain()?;
                self.lists += 1;
            }
            _ => (),
        }
        if self.list.push(page) {
            Ok(())
        } else {
            Err(self.list.unfit())
        }
    }

    /// Returns the pointer of the command, and the list.
    #[inline]
    pub(crate) fn finish(self) -> (DataPointer, L) {
        let data = DataPointer {
            first: self.first,
            second: self.second,
            is_sgl: false,
        };
        (data, self.list)
    }
}
