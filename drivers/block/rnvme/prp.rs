// SPDX-License-Identifier: GPL-2.0

//! The pages of a command's memory, as a controller is told of them.
//!
//! A command has room for two addresses. The first is that of the first byte. The second is that of
//! the second page, or of a list of all pages from the second on.
//!
//! Pure: imports nothing of the kernel, so the same file is compiled and tested on the host.

/// The size of a page of the controller.
pub(crate) const PAGE_SIZE: u64 = 4096;

/// The number of entries of a list. This driver does not chain lists.
pub(crate) const LIST_ENTRIES: usize = 512;

/// The most bytes that a command can move wherever they begin: all pages of a list, as the first
/// page may consist of a single byte.
pub(crate) const MAX_BYTES: u32 = (LIST_ENTRIES as u32) * (PAGE_SIZE as u32);

/// The two addresses of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prps {
    /// The address of the first byte.
    pub(crate) first: u64,
    /// The address of the second page or of the list; 0 if there is one page only.
    pub(crate) second: u64,
}

/// A list of pages, in memory of the controller.
pub(crate) trait List {
    /// What is wrong if an entry cannot be set.
    type Error;

    /// Returns the address of the list, which begins to exist.
    fn begin(&mut self) -> Result<u64, Self::Error>;

    /// Sets an entry of the list, whose index is less than [`LIST_ENTRIES`].
    fn set(&mut self, index: usize, page: u64) -> Result<(), Self::Error>;

    /// Sets `count` entries from `index` on to pages that follow one another.
    fn set_all(&mut self, index: usize, page: u64, count: usize) -> Result<(), Self::Error> {
        (0..count).try_for_each(|nth| self.set(index + nth, page + nth as u64 * PAGE_SIZE))
    }

    /// Returns the error for memory that cannot be described.
    fn unfit(&self) -> Self::Error;
}

/// The addresses of a command whose memory is added range by range.
pub(crate) struct Builder<L> {
    prps: Prps,
    /// How many pages were added.
    pages: usize,
    /// The address behind the last byte.
    end: u64,
    list: L,
}

impl<L: List> Builder<L> {
    /// Begins with no memory.
    #[inline]
    pub(crate) fn new(list: L) -> Self {
        Self {
            prps: Prps::default(),
            pages: 0,
            end: 0,
            list,
        }
    }

    /// Returns the list.
    pub(crate) fn list_mut(&mut self) -> &mut L {
        &mut self.list
    }

    /// Adds a range of memory.
    ///
    /// # Errors
    ///
    /// That of the list. All ranges but the first begin at a page, all but the last end at one;
    /// otherwise they are unfit, and so are more pages than fit into a list.
    #[inline]
    pub(crate) fn add(&mut self, address: u64, bytes: u32) -> Result<(), L::Error> {
        let len = u64::from(bytes);
        if len > 0 && address % PAGE_SIZE + len <= PAGE_SIZE {
            // The most frequent cases: a single page, and one of many in a list that has begun.
            if self.pages == 0 {
                self.prps.first = address;
                self.pages = 1;
                self.end = address.wrapping_add(len);
                return Ok(());
            }
            let is_joined = (self.end | address) % PAGE_SIZE == 0;
            if is_joined && (3..=LIST_ENTRIES).contains(&self.pages) {
                self.list.set(self.pages - 1, address)?;
                self.pages += 1;
                self.end = address.wrapping_add(len);
                return Ok(());
            }
        }
        self.add_pages(address, len)
    }

    #[inline(never)]
    fn add_pages(&mut self, address: u64, len: u64) -> Result<(), L::Error> {
        let is_joined = self.pages == 0 || (self.end % PAGE_SIZE == 0 && address % PAGE_SIZE == 0);
        let Some(end) = address.checked_add(len).filter(|_| is_joined && len > 0) else {
            return Err(self.list.unfit());
        };
        let first = address - address % PAGE_SIZE;
        let count = (end - first).div_ceil(PAGE_SIZE) as usize;
        let nth = |index: usize| first + index as u64 * PAGE_SIZE;
        let mut added = 0;
        while added < count && self.pages < 3 {
            self.add_page(if added == 0 { address } else { nth(added) })?;
            added += 1;
        }
        let rest = count - added;
        if rest > LIST_ENTRIES + 1 - self.pages {
            return Err(self.list.unfit());
        }
        if rest > 0 {
            self.list.set_all(self.pages - 1, nth(added), rest)?;
            self.pages += rest;
        }
        self.end = end;
        Ok(())
    }

    fn add_page(&mut self, page: u64) -> Result<(), L::Error> {
        match self.pages {
            0 => self.prps.first = page,
            1 => self.prps.second = page,
            2 => {
                let list = self.list.begin()?;
                self.list.set(0, self.prps.second)?;
                self.list.set(1, page)?;
                self.prps.second = list;
            }
            pages if pages <= LIST_ENTRIES => self.list.set(pages - 1, page)?,
            _ => return Err(self.list.unfit()),
        }
        self.pages += 1;
        Ok(())
    }

    /// Returns the addresses, and the list.
    #[inline]
    pub(crate) fn finish(self) -> (Prps, L) {
        (self.prps, self.list)
    }
}
