// SPDX-License-Identifier: GPL-2.0

//! The data of a memory-backed disk.
//!
//! A page comes into being when it is first written to, and goes when the last of its sectors is
//! discarded. A writer gets the memory for a block before it changes any byte of it.
//!
//! A reader takes a lock only if it finds a writer, or a block in part. A logical block is read and
//! written as a whole: the sequence counter of its first page tells a reader of a write in between.
//! A request of several blocks is not.

use crate::{
    pages::{
        self,
        Page,
        PageBox,
        Pages, //
    },
    range::{
        self,
        ByteRange, //
    },
    sectors::Sectors, //
};
use core::mem;
use kernel::{
    alloc::Flags,
    block::bio::{
        FromDisk,
        MappedBytes,
        Segments,
        ToDisk, //
    },
    page::PAGE_SIZE,
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu,
        rcu_free::{
            RcuBatch,
            Removed, //
        },
    },
    xarray::{
        Cursor,
        Entry,
        Rcu,
        Reservation,
        Run, //
    },
};

/// The lock of a shard.
pub(crate) type Guard<'a> = kernel::xarray::Guard<'a, PageBox, Rcu>;

/// A page that was removed. Readers may have found it before.
type RemovedPage<'a> = Removed<'a, PageBox>;

/// Pages that were removed, to be freed together.
#[derive(Default)]
struct Batch<'a>(RcuBatch<'a, PageBox>);

impl<'a> Batch<'a> {
    fn push(&mut self, page: RemovedPage<'a>) {
        // It may be the first page of a block. Readers of that have to notice that it is gone
        // before they miss the other pages.
        page.borrow().private().invalidate(&page);
        self.0.push(page);
    }
}

/// The data of a memory-backed disk.
pub(crate) struct Store {
    pages: Pages<(), Rcu>,
    /// The number of pages that a logical block spans.
    block_pages: Atomic<usize>,
}

impl Store {
    /// Creates an empty store for logical blocks of `block_size` bytes.
    pub(crate) fn new(block_size: u32) -> Result<Self> {
        Ok(Self {
            pages: Pages::new(c"rnull_store", static_lock_class!(), || ())?,
            block_pages: Atomic::new(range::block_pages(block_size)),
        })
    }

    /// Changes the logical block size while no disk uses the store. The data stays.
    pub(crate) fn set_block_size(&self, block_size: u32) {
        self.block_pages
            .store(range::block_pages(block_size), Relaxed);
    }

    /// Returns the number of pages that a logical block spans.
    #[inline]
    pub(crate) fn block_pages(&self) -> usize {
        self.block_pages.load(Relaxed)
    }

    /// Copies `len` bytes from byte `at` on. What was never written reads as zeros.
    #[inline(always)]
    pub(crate) fn read(&self, at: u64, len: u32, to: &Segments<'_, FromDisk>) -> Result {
        match ByteRange::in_page(at, len) {
            Some(range) if self.block_pages() == 1 => self.read_page(range, to),
            _ => match ByteRange::in_region(at, len) {
                Some(range) => self.read_range(range, &mut to.clone()),
                None => self.read_regions(at, len, &mut to.clone()),
            },
        }
    }

    /// Copies a range of a page.
    // The segments are cloned for each call, so that their address is not needed: the compiler
    // keeps them in registers.
    #[inline(always)]
    fn read_page(&self, range: ByteRange, to: &Segments<'_, FromDisk>) -> Result {
        if self.try_read_page(range, to) {
            Ok(())
        } else {
            self.read_range(range, &mut to.clone())
        }
    }

    /// Copies a range of a page, unless it is being written, or the bytes go to several places.
    /// Returns whether that was done.
    #[inline(always)]
    fn try_read_page(&self, range: ByteRange, to: &Segments<'_, FromDisk>) -> bool {
        let reader = rcu::read_lock();
        let shard = self.pages.shard(range.page());
        let Some(page) = shard.load(&reader, pages::index(range.page())) else {
            to.clone().zero(range.len());
            return true;
        };
        let Some(read) = page.private().begin_read() else {
            return false;
        };
        let Some(bytes) = to.contiguous(range.len()) else {
            return false;
        };
        bytes.copy_from_folio(page, range.offset()).is_ok() && read.is_valid()
    }

    /// Copies a range of a page that was found, or is missing.
    #[inline(always)]
    fn read_found(
        &self,
        found: Option<&Page>,
        range: ByteRange,
        to: &Segments<'_, FromDisk>,
    ) -> Result {
        let Some(page) = found else {
            to.clone().zero(range.len());
            return Ok(());
        };
        if let Some(read) = page.private().begin_read() {
            let done = to
                .clone()
                .copy_from_folio(page, range.offset(), range.len());
            if read.is_valid() {
                return done;
            }
        }
        self.read_locked(range, &mut to.clone())
    }

    /// As [`Self::read`], for any range.
    #[inline(never)]
    fn read_regions(&self, at: u64, len: u32, to: &mut Segments<'_, FromDisk>) -> Result {
        range::regions(at, len.into())?.try_for_each(|range| self.read_range(range, to))
    }

    /// Copies a range, and skips the bytes that it was copied to.
    #[inline(never)]
    pub(crate) fn read_range(&self, range: ByteRange, to: &mut Segments<'_, FromDisk>) -> Result {
        let block_pages = self.block_pages();
        if block_pages > 1 {
            return self.read_blocks(range, block_pages, to);
        }
        let reader = rcu::read_lock();
        let shard = self.pages.shard(range.page());
        let mut cursor = shard.cursor(&reader, pages::index(range.page()));
        let mut rest = range;
        while !rest.is_empty() {
            let before = rest;
            to.with_mapped(rest.len(), |bytes| {
                self.read_pages(&mut cursor, &mut rest, bytes)
            })
            .ok_or(EINVAL)??;
            // A part of a page, or a page whose bytes go to several segments.
            if rest == before {
                let part = rest.split_off_page();
                self.read_found(cursor.next(), part, to)?;
                to.skip_bytes(part.len() as u32);
            }
        }
        Ok(())
    }

    /// Copies whole pages, as many as there are bytes for.
    #[inline(always)]
    fn read_pages(
        &self,
        cursor: &mut Cursor<'_, PageBox>,
        range: &mut ByteRange,
        to: &mut MappedBytes<'_, FromDisk>,
    ) -> Result {
        let mut left = range.first(to.len()).whole_pages();
        while left > 0 {
            let run = cursor.run(left);
            let count = run.len();
            let whole = to.split_off(count * PAGE_SIZE).ok_or(EINVAL)?;
            self.read_run(range.page(), run, &whole)?;
            range.split_off(count * PAGE_SIZE);
            left -= count;
        }
        Ok(())
    }

    /// Copies pages from the one with the number `first` on.
    // A function of its own, so that the loop has the registers to itself.
    #[inline(never)]
    fn read_run(
        &self,
        first: usize,
        run: Run<'_, PageBox>,
        to: &MappedBytes<'_, FromDisk>,
    ) -> Result {
        let count = run.len();
        // The compiler learns that there are as many chunks.
        let to = to.first(count * PAGE_SIZE).ok_or(EINVAL)?;
        let mut chunks = to.chunks(PAGE_SIZE);
        for found in run {
            let to = chunks.next().ok_or(EINVAL)?;
            let Some(found) = found else {
                to.zero();
                continue;
            };
            if let Some(read) = found.private().begin_read() {
                to.copy_from_folio(found, 0)?;
                if read.is_valid() {
                    continue;
                }
            }
            let index = count.wrapping_sub(chunks.len()).wrapping_sub(1);
            self.read_page_locked(first.wrapping_add(index), to)?;
        }
        Ok(())
    }

    /// Copies a page after the write that is in progress.
    #[cold]
    fn read_page_locked(&self, page: usize, to: MappedBytes<'_, FromDisk>) -> Result {
        let guard = self.pages.shard(page).lock();
        match guard.get(pages::index(page)) {
            Some(page) => to.copy_from_folio(page, 0)?,
            None => to.zero(),
        }
        Ok(())
    }

    /// Copies a range after the write that is in progress.
    #[cold]
    fn read_locked(&self, range: ByteRange, to: &mut Segments<'_, FromDisk>) -> Result {
        let guard = self.pages.shard(range.page()).lock();
        let mut cursor = guard.cursor(pages::index(range.page()));
        pages::read_parts(range, || cursor.next(), to)
    }

    /// Copies a range of blocks of `block_pages` pages.
    #[inline(never)]
    fn read_blocks(
        &self,
        range: ByteRange,
        block_pages: usize,
        to: &mut Segments<'_, FromDisk>,
    ) -> Result {
        let shard = self.pages.shard(range.page());
        let mut rest = range;
        while !rest.is_empty() {
            let block = rest.split_off_block(block_pages);
            let reader = rcu::read_lock();
            let start = block.block(block_pages);
            let mut cursor = shard.cursor(&reader, pages::index(start));
            let first = cursor.next();
            // The page that the range starts with is the first, or one behind it.
            let mut is_first = block.page() == start;
            for _ in start + 1..block.page() {
                let _ = cursor.next();
            }
            let mut next = || {
                if mem::take(&mut is_first) {
                    first
                } else {
                    cursor.next()
                }
            };
            let mut copy = to.clone();
            let done = match first {
                Some(first) => first
                    .private()
                    .read(|_| pages::read_parts(block, next, &mut copy)),
                // Without the first page, nothing tells of a write. But if all are missing, there
                // was a time at which none of them had data.
                None if block.parts().all(|_| next().is_none()) => {
                    copy.zero(block.len());
                    Some(Ok(()))
                }
                None => None,
            };
            match done {
                Some(done) => {
                    done?;
                    *to = copy;
                }
                None => self.read_locked(block, to)?,
            }
        }
        Ok(())
    }

    /// Copies `len` bytes to byte `at` on. Memory is allocated with `flags`.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory for a block. That block and those after it are unchanged.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        flags: Flags,
        at: u64,
        len: u32,
        from: &Segments<'_, ToDisk>,
    ) -> Result {
        match ByteRange::in_page(at, len) {
            Some(range) if self.block_pages() == 1 => self.write_page(flags, range, from),
            _ => match ByteRange::in_region(at, len) {
                Some(range) => self.write_range(flags, range, &mut from.clone()),
                None => self.write_regions(flags, at, len, &mut from.clone()),
            },
        }
    }

    /// Copies to a range of a page. See [`Self::read_page`] on the segments.
    #[inline(always)]
    fn write_page(&self, flags: Flags, range: ByteRange, from: &Segments<'_, ToDisk>) -> Result {
        if self.try_write_page(range, from) {
            Ok(())
        } else {
            self.write_range(flags, range, &mut from.clone())
        }
    }

    /// Copies to a range of a page, unless there is no memory for it without waiting, or the bytes
    /// come from several places. Returns whether that was done.
    #[inline(always)]
    fn try_write_page(&self, range: ByteRange, from: &Segments<'_, ToDisk>) -> bool {
        let mut guard = self.pages.shard(range.page()).lock();
        match guard.entry(pages::index(range.page())) {
            Entry::Occupied(place) => match from.contiguous(range.len()) {
                Some(bytes) => pages::write_bytes(&place, place.get(), range, &bytes).is_ok(),
                None => false,
            },
            Entry::Vacant(place) => pages::insert_segments(place, range, &from.clone()),
        }
    }

    /// As [`Self::write`], for any range.
    #[inline(never)]
    fn write_regions(
        &self,
        flags: Flags,
        at: u64,
        len: u32,
        from: &mut Segments<'_, ToDisk>,
    ) -> Result {
        range::regions(at, len.into())?.try_for_each(|range| self.write_range(flags, range, from))
    }

    /// Copies to a range.
    #[inline(never)]
    fn write_range(
        &self,
        flags: Flags,
        range: ByteRange,
        from: &mut Segments<'_, ToDisk>,
    ) -> Result {
        let block_pages = self.block_pages();
        let mut rest = range;
        loop {
            let mut guard = self.pages.shard(rest.page()).lock();
            if block_pages > 1 {
                Self::write_blocks(&guard, &mut rest, block_pages, from)?;
            } else {
                Self::write_pages(&mut guard, &mut rest, from)?;
            }
            if rest.is_empty() {
                return Ok(());
            }
            // Memory is waited for with no lock held.
            drop(guard);
            self.add_pages(rest.block(block_pages), block_pages, flags)?;
        }
    }

    /// Copies to a range of several pages, up to the first for which there is no memory.
    #[inline(never)]
    fn write_pages(
        guard: &mut Guard<'_>,
        range: &mut ByteRange,
        from: &mut Segments<'_, ToDisk>,
    ) -> Result {
        while !range.is_empty() {
            let before = *range;
            from.with_mapped(range.len(), |bytes| loop {
                Self::write_whole_pages(guard, range, bytes)?;
                // The next page is missing, or there are no more bytes for it.
                if range.whole_pages() == 0 || !Self::insert_page(guard, range, bytes) {
                    return Ok::<(), Error>(());
                }
            })
            .ok_or(EINVAL)??;
            // A part of a page, or a page whose bytes come from several segments, or one that there
            // is no memory for.
            if *range == before {
                let mut rest = *range;
                let part = rest.split_off_page();
                let Some(page) = guard.get(pages::index(part.page())) else {
                    break;
                };
                pages::write_part(guard, page, part, from)?;
                *range = rest;
            }
        }
        Ok(())
    }

    /// Inserts the first page of a range. Returns `false` as [`pages::insert`] does.
    #[inline(never)]
    fn insert_page(
        guard: &mut Guard<'_>,
        range: &mut ByteRange,
        from: &mut MappedBytes<'_, ToDisk>,
    ) -> bool {
        let Entry::Vacant(place) = guard.entry(pages::index(range.page())) else {
            return false;
        };
        if !pages::insert(place, range.first(PAGE_SIZE), from) {
            return false;
        }
        range.split_off(PAGE_SIZE);
        from.split_off(PAGE_SIZE).is_some()
    }

    /// Copies to whole pages, as many as there are bytes for, up to the first that is missing.
    #[inline(always)]
    fn write_whole_pages(
        guard: &Guard<'_>,
        range: &mut ByteRange,
        from: &mut MappedBytes<'_, ToDisk>,
    ) -> Result {
        let mut left = range.first(from.len()).whole_pages();
        let mut cursor = guard.cursor(pages::index(range.page()));
        while left > 0 {
            let run = cursor.run(left);
            let count = run.len();
            let whole = from.first(count * PAGE_SIZE).ok_or(EINVAL)?;
            let behind = Self::write_run(guard, run, &whole)?;
            let done = behind.map_or(count, |behind| count.wrapping_sub(behind).wrapping_sub(1));
            let size = done * PAGE_SIZE;
            range.split_off(size);
            from.split_off(size);
            if done < count {
                break;
            }
            left -= count;
        }
        Ok(())
    }

    /// Copies to pages, up to the first that is missing. If one is, returns how many are behind it.
    // A function of its own, so that the loop has the registers to itself.
    #[inline(never)]
    fn write_run(
        guard: &Guard<'_>,
        run: Run<'_, PageBox>,
        from: &MappedBytes<'_, ToDisk>,
    ) -> Result<Option<usize>> {
        // The compiler learns that there are as many chunks.
        let from = from.first(run.len() * PAGE_SIZE).ok_or(EINVAL)?;
        let mut chunks = from.chunks(PAGE_SIZE);
        for page in run {
            let from = chunks.next().ok_or(EINVAL)?;
            let Some(page) = page else {
                return Ok(Some(chunks.len()));
            };
            let write = page.private().begin_write(guard);
            let done = from.copy_to_folio(page, 0);
            write.end(Sectors::ALL.bits());
            done?;
        }
        Ok(None)
    }

    /// Copies to a range of blocks of several pages, up to the first that lacks a page.
    #[inline(never)]
    fn write_blocks(
        guard: &Guard<'_>,
        range: &mut ByteRange,
        block_pages: usize,
        from: &mut Segments<'_, ToDisk>,
    ) -> Result {
        while !range.is_empty() {
            let mut rest = *range;
            let block = rest.split_off_block(block_pages);
            if !pages::write_block(guard, block, block_pages, from)? {
                break;
            }
            *range = rest;
        }
        Ok(())
    }

    /// Adds the missing ones of the `block_pages` pages of a block, all or none. They are zeros, as
    /// before.
    #[cold]
    pub(crate) fn add_pages(&self, first: usize, block_pages: usize, flags: Flags) -> Result {
        let add = |page| {
            let shard = self.pages.shard(page);
            let index = pages::index(page);
            if shard.load(&rcu::read_lock(), index).is_some() {
                return Ok(());
            }
            match shard.insert(index, pages::zeroed(flags)?, flags) {
                Err(error) if error.error != EBUSY => Err(error.error),
                _ => Ok(()),
            }
        };
        (first..first + block_pages)
            .try_for_each(add)
            .inspect_err(|_| self.remove_empty(first, block_pages))
    }

    /// Removes those pages of a block that hold no data. A writer that is about to use one of them
    /// adds it again.
    #[cold]
    fn remove_empty(&self, first: usize, block_pages: usize) {
        let mut batch = Batch::default();
        let mut guard = self.pages.shard(first).lock();
        for index in (first..first + block_pages).map(pages::index) {
            let sectors = guard.get(index).map(pages::sectors);
            if sectors == Some(Sectors::NONE) {
                if let Some(page) = guard.remove(index) {
                    batch.push(page);
                }
            }
        }
    }

    /// Makes `len` bytes from byte `at` on read as zeros.
    pub(crate) fn discard(&self, at: u64, len: u32) -> Result {
        match ByteRange::in_region(at, len) {
            Some(range) => self.discard_range(range),
            None => range::regions(at, len.into())?.try_for_each(|range| self.discard_range(range)),
        }
    }

    /// Makes a range read as zeros.
    pub(crate) fn discard_range(&self, range: ByteRange) -> Result {
        let shard = self.pages.shard(range.page());
        let mut batch = Batch::default();
        let mut guard = shard.lock();
        pages::discard(&mut guard, range, |page| batch.push(page))?;
        // The pages are freed without the lock.
        drop(guard);
        Ok(())
    }

    /// Takes the lock of the shard of a page.
    #[inline]
    pub(crate) fn lock(&self, page: usize) -> Guard<'_> {
        self.pages.shard(page).lock()
    }

    /// Makes room for a page of a cache, without waiting for memory. Returns [`None`] if there is a
    /// page already.
    pub(crate) fn reserve(&self, page: usize) -> Result<Option<Reservation<'_, PageBox>>> {
        match self
            .pages
            .shard(page)
            .reserve(pages::index(page), GFP_NOWAIT)
        {
            Ok(place) => Ok(Some(place)),
            Err(EBUSY) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Copies the sectors that pages of a cache hold, which are numbered and those of a block, to
    /// pages that are there. The cache keeps out readers of the block.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if one is not there. In that case nothing is copied.
    pub(crate) fn merge_all<'p>(
        &self,
        first: usize,
        mut cached: impl Iterator<Item = (usize, &'p Page)> + Clone,
    ) -> Result {
        let guard = self.lock(first);
        let is_missing = |page| guard.get(pages::index(page)).is_none();
        if cached.clone().any(|(page, _)| is_missing(page)) {
            return Err(ENOMEM);
        }
        cached.try_for_each(|(page, from)| {
            let page = guard.get(pages::index(page)).ok_or(ENOMEM)?;
            pages::merge(&guard, page, from)
        })
    }
}
