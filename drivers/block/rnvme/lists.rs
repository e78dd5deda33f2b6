// SPDX-License-Identifier: GPL-2.0

//! The memory of a controller in which lists describe the memory of commands.

use super::{
    command::{
        deallocate_range,
        Blocks, //
    },
    data_pointer::{
        DataPointer,
        List, //
    },
    prp::{
        fills_list,
        LIST_ENTRIES,
        PAGE_SIZE, //
    },
};
use core::mem::replace;
use kernel::{
    block::BlkStatus,
    device::{
        Bound,
        Device, //
    },
    dma::pool::{
        DmaBlock,
        DmaMemory,
        DmaPool,
        DmaWriter, //
    },
    prelude::*, //
};

/// The number of words of a short list, which is enough for 128 KiB in pages.
const SHORT_WORDS: usize = 32;

/// The number of words of a page.
const PAGE_WORDS: usize = LIST_ENTRIES;

/// The pools of a controller.
pub(crate) struct Pools {
    short: DmaPool<u64, SHORT_WORDS>,
    pages: DmaPool<u64, PAGE_WORDS>,
}

impl Pools {
    /// Makes pools of so many short lists, and of so many pages.
    pub(crate) fn new(dev: &Device<Bound>, short: usize, pages: usize) -> Result<Self> {
        Ok(Self {
            short: DmaPool::new(dev, short)?,
            pages: DmaPool::new(dev, pages)?,
        })
    }

    /// Returns a list which begins to exist when it is needed, and which will have at most so many
    /// words.
    #[inline]
    pub(crate) fn list(&self, words: usize) -> PooledList<'_> {
        PooledList {
            pools: self,
            words,
            bounds: None,
            last: DmaWriter::default(),
            before: None,
        }
    }

    /// Returns a list of the pages of so many bytes. If it has a guard, what follows its words is
    /// the address of that page.
    #[inline]
    pub(crate) fn list_of_pages(&self, bytes: u32, guard: Option<&Guard>) -> PooledList<'_> {
        PooledList {
            bounds: guard.map(|page| Bounds {
                page: page.0.address(),
                bytes,
            }),
            ..self.list(words_of_pages(bytes))
        }
    }

    /// Takes a page for a command of which it is not known how much it moves.
    ///
    /// # Errors
    ///
    /// `RESOURCE` if there is no memory.
    pub(crate) fn guard(&self) -> Result<Guard, BlkStatus> {
        let mut page = self.pages.take().ok_or(BlkStatus::RESOURCE)?;
        let entry = page.address().to_le();
        page.write_all(0, core::iter::repeat_n(entry, PAGE_WORDS))
            .map_err(|_| BlkStatus::IOERR)?;
        Ok(Guard(page))
    }

    /// Writes ranges of blocks to deallocate into a page. Returns the pointer of the command, the
    /// page, and the number of ranges, which is at least 1. It has the size of a page, however few
    /// there are: some controllers read all that may be in it.
    ///
    /// # Errors
    ///
    /// `RESOURCE` if there is no memory; `IOERR` for more ranges than there is room for, or none.
    pub(crate) fn deallocate_ranges(
        &self,
        ranges: impl Iterator<Item = Blocks>,
    ) -> Result<(DataPointer, Option<DmaMemory>, u32), BlkStatus> {
        let block = self.pages.take().ok_or(BlkStatus::RESOURCE)?;
        let data = DataPointer {
            first: block.address(),
            ..DataPointer::default()
        };
        let mut page = block.into_writer();
        let mut count = 0;
        for range in ranges {
            for word in deallocate_range(range) {
                if !page.push(word.to_le()) {
                    return Err(BlkStatus::IOERR);
                }
            }
            count += 1;
        }
        if count == 0 {
            return Err(BlkStatus::IOERR);
        }
        Ok((data, page.into_memory(), count))
    }
}

/// A page that nothing else uses, which is also a list: of itself.
pub(crate) struct Guard(DmaBlock<u64>);

impl Guard {
    /// Puts the page in place of addresses that are 0, which a controller would use if the command
    /// moves more than the memory that it was given.
    ///
    /// A command with two addresses has no room for it. If it moves more than two pages, a
    /// controller takes the second page for a list.
    pub(crate) fn complete(
        self,
        data: DataPointer,
        list: Option<DmaMemory>,
    ) -> (DataPointer, Option<DmaMemory>) {
        let page = self.0.address();
        if let Some(mut list) = list {
            // The list may lead to the page.
            list.append(self.0.into_memory());
            return (data, Some(list));
        }
        if data.second != 0 {
            return (data, None);
        }
        let data = DataPointer {
            first: if data.first == 0 { page } else { data.first },
            second: page,
            is_sgl: false,
        };
        (data, Some(self.0.into_memory()))
    }
}

/// What a list needs to know whose command may move more than it was given memory for.
struct Bounds {
    /// The address of the guard.
    page: u64,
    /// How much memory there is.
    bytes: u32,
}

/// A list that is taken from the pools when it is needed.
pub(crate) struct PooledList<'a> {
    pools: &'a Pools,
    words: usize,
    bounds: Option<Bounds>,
    /// The block that is written to.
    last: DmaWriter<u64>,
    /// Those before it.
    before: Option<DmaMemory>,
}

impl PooledList<'_> {
    /// Returns the memory of the list, if it has begun.
    #[inline]
    pub(crate) fn into_memory(self) -> Option<DmaMemory> {
        let mut memory = self.last.into_memory()?;
        if let Some(before) = self.before {
            memory.append(before);
        }
        Some(memory)
    }

    /// Returns whether the list is a short one.
    #[inline]
    fn is_short(&self) -> bool {
        self.words <= SHORT_WORDS && self.bounds.is_none()
    }

    /// Takes a page, which leads to the guard if there is one.
    fn page(&self) -> Result<DmaBlock<u64>, BlkStatus> {
        let mut page = self.pools.pages.take().ok_or(BlkStatus::RESOURCE)?;
        if let Some(bounds) = &self.bounds {
            page.write_all(0, core::iter::repeat_n(bounds.page.to_le(), PAGE_WORDS))
                .map_err(|_| BlkStatus::IOERR)?;
        }
        Ok(page)
    }
}

impl List for PooledList<'_> {
    type Error = BlkStatus;

    fn begin(&mut self, first: u64) -> Result<u64, BlkStatus> {
        let is_full = |bounds: &Bounds| fills_list(first, bounds.bytes);
        if self.bounds.as_ref().is_some_and(is_full) {
            // There is no place for the address of the guard.
            return Err(BlkStatus::INVAL);
        }
        let block = if self.is_short() {
            self.pools.short.take().ok_or(BlkStatus::RESOURCE)?
        } else {
            self.page()?
        };
        let address = block.address();
        self.last = block.into_writer();
        Ok(address)
    }

    #[inline]
    fn push(&mut self, word: u64) -> bool {
        self.last.push(word.to_le())
    }

    #[cold]
    fn chain(&mut self) -> Result<(), BlkStatus> {
        if self.is_short() {
            return Err(BlkStatus::IOERR);
        }
        let next = self.page()?;
        let moved = self.last.replace_last(next.address().to_le());
        let full = replace(&mut self.last, next.into_writer());
        if let Some(mut full) = full.into_memory() {
            if let Some(before) = self.before.take() {
                full.append(before);
            }
            self.before = Some(full);
        }
        let is_moved = moved.is_some_and(|word| self.last.push(word));
        is_moved.then_some(()).ok_or(BlkStatus::IOERR)
    }

    fn close(&mut self) {
        self.last.close();
    }

    fn unfit(&self) -> BlkStatus {
        BlkStatus::IOERR
    }
}

/// Returns how many words a list of the pages of so many bytes has at most.
#[inline]
fn words_of_pages(bytes: u32) -> usize {
    // One page more, as the first and the last may be parts of pages; but the first is in no list.
    u64::from(bytes).div_ceil(PAGE_SIZE) as usize
}
