// SPDX-License-Identifier: GPL-2.0

//! The write cache of a memory-backed disk.
//!
//! What is written goes to pages of the cache. They are written back to the store when there is no
//! room for others, or when the cache is flushed. What was not written back is lost at power-off.
//!
//! A request to a cached disk holds the lock of the cache's shard while it uses the store. So it
//! sees each sector in the cache or in the store, and the newer one if it is in both.
//!
//! The room is a number of pages for the whole cache, which the shards take from it in portions. A
//! shard that has no room writes back pages of its own. So jobs in different regions write to no
//! cache line in common, once the cache is full.

use crate::{
    pages::{
        self,
        Page,
        PageBox,
        Pages,
        SHARDS, //
    },
    range::{
        self,
        ByteRange, //
    },
    sectors::{
        Sectors,
        GRANULE, //
    },
    store::{
        self,
        Store, //
    },
};
use core::ops::RangeInclusive;
use kernel::{
    alloc::Flags,
    block::bio::{
        FromDisk,
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
        Arc, //
    },
    xarray::{
        Entry,
        Locked,
        OccupiedEntry, //
    },
};

/// The lock of a shard.
type Guard<'a> = kernel::xarray::Guard<'a, PageBox, Locked>;

/// A page of a shard.
type CachedPage<'g, 'a> = OccupiedEntry<'g, 'a, PageBox, Locked>;

/// The number of bytes in the smallest logical block that the cache can tell from its neighbours.
pub(crate) const SMALLEST_BLOCK: u32 = GRANULE as u32;

/// What a shard has beside its pages. The lock of the shard protects it.
struct Share {
    /// The number of pages.
    count: Atomic<isize>,
    /// The number of pages for which the shard has taken room.
    room: Atomic<isize>,
    /// The index from which on to look for pages to be written back.
    next: Atomic<usize>,
}

impl Share {
    fn new() -> Self {
        Self {
            count: Atomic::new(0),
            room: Atomic::new(0),
            next: Atomic::new(0),
        }
    }

    /// Returns whether there is room for a page more.
    fn has_room(&self) -> bool {
        self.count.load(Relaxed) < self.room.load(Relaxed)
    }
}

/// Adds to a number that a lock protects.
fn add(number: &Atomic<isize>, count: isize) {
    number.store(number.load(Relaxed) + count, Relaxed);
}

/// Why pages could not be added to the cache.
enum Lack {
    /// There is no memory for a page of the cache.
    CacheMemory,
    /// There is no memory in the store for the block that starts with this page, which has to be
    /// written back.
    StoreMemory(usize),
    /// Other shards have the room.
    Room,
}

/// A shard whose lock is held.
struct LockedShard<'a> {
    number: usize,
    share: &'a Share,
    guard: Guard<'a>,
}

/// The write cache of a memory-backed disk.
pub(crate) struct WriteCache {
    store: Arc<Store>,
    pages: Pages<Share, Locked>,
    /// The room that no shard has taken, in pages.
    room: Atomic<isize>,
    /// How much of it a shard takes.
    portion: isize,
    /// How much room each shard can have if all of them need it.
    fair_share: isize,
    /// How many pages are written back at a time.
    batch: usize,
    /// The shard that has to give up room next.
    victim: Atomic<usize>,
}

impl WriteCache {
    /// Creates an empty cache of at most `size` bytes in front of `store`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the block size is no multiple of [`SMALLEST_BLOCK`]; [`ENOMEM`].
    pub(crate) fn new(store: Arc<Store>, size: u64, block_size: u32) -> Result<Self> {
        // Sectors that share a bit would be written back together.
        if block_size == 0 || block_size % SMALLEST_BLOCK != 0 {
            return Err(EINVAL);
        }
        let pages = isize::try_from(size / PAGE_SIZE as u64).unwrap_or(isize::MAX);
        let room = pages.max(range::MAX_BLOCK_PAGES as isize);
        let fair_share = room / SHARDS as isize;
        Ok(Self {
            store,
            pages: Pages::new(c"rnull_cache", static_lock_class!(), Share::new)?,
            room: Atomic::new(room),
            // A shard takes at most three pages more than it needs, or a quarter of its share.
            portion: (fair_share / 4).clamp(1, 4),
            fair_share,
            // Small enough for others to wait, and not more than a shard may have.
            batch: fair_share.clamp(1, 16) as usize,
            victim: Atomic::new(0),
        })
    }

    /// Takes the lock of the shard with a number.
    #[inline]
    fn lock(&self, number: usize) -> LockedShard<'_> {
        let (shard, share) = self.pages.by_number(number);
        LockedShard {
            number,
            share,
            guard: shard.lock(),
        }
    }

    /// Copies `len` bytes from byte `at` on.
    pub(crate) fn read(&self, at: u64, len: u32, to: &mut Segments<'_, FromDisk>) -> Result {
        if let Some(range) = ByteRange::in_page(at, len) {
            let mut guard = self.pages.shard(range.page()).lock();
            return match guard.entry(pages::index(range.page())) {
                Entry::Vacant(_) => self.store.read(at, len, to),
                Entry::Occupied(place) => self.read_page(place.get(), range, to),
            };
        }
        for range in range::regions(at, len.into())? {
            let guard = self.pages.shard(range.page()).lock();
            let indices = pages::index(range.page())..=pages::index(range.last_page());
            if guard.find(indices).is_none() {
                self.store.read_range(range, to)?;
                continue;
            }
            for part in range.parts() {
                match guard.get(pages::index(part.page())) {
                    None => self.store.read_range(part, to)?,
                    Some(page) => self.read_page(page, part, to)?,
                }
            }
        }
        Ok(())
    }

    /// Copies a range of a page, those sectors from the cache that it has.
    fn read_page(&self, page: &Page, range: ByteRange, to: &mut Segments<'_, FromDisk>) -> Result {
        let cached = pages::sectors(page);
        if cached.with(pages::touched(range)) == cached {
            return to.copy_from_folio(page, range.offset(), range.len());
        }
        let mut rest = range;
        while !rest.is_empty() {
            let (len, is_cached) = cached.run(rest.offset(), rest.len());
            let run = rest.split_off(len);
            if is_cached {
                to.copy_from_folio(page, run.offset(), run.len())?;
            } else {
                self.store.read_range(run, to)?;
            }
        }
        Ok(())
    }

    /// Copies `len` bytes to byte `at` on, and if `fua`, on to the store. Memory is allocated with
    /// `flags`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the range is not a multiple of [`SMALLEST_BLOCK`]. [`ENOMEM`] if there is no
    /// memory for a block, which is then in the cache only, or unchanged. Those after it are
    /// unchanged.
    pub(crate) fn write(
        &self,
        flags: Flags,
        at: u64,
        len: u32,
        from: &mut Segments<'_, ToDisk>,
        fua: bool,
    ) -> Result {
        // The rest of a sector would be taken for data.
        if (at as u32 | len) % SMALLEST_BLOCK != 0 {
            return Err(EINVAL);
        }
        let block_pages = self.store.block_pages();
        match ByteRange::in_page(at, len) {
            Some(range) if block_pages == 1 && !fua => {
                if let Some(done) = self.write_page(&mut self.lock_page(range), range, from) {
                    return done;
                }
            }
            _ => (),
        }
        for range in range::regions(at, len.into())? {
            let mut rest = range;
            while !rest.is_empty() {
                let block = rest.split_off_block(block_pages);
                self.write_block(flags, block, block_pages, from)?;
                if fua {
                    self.write_back(flags, block.block(block_pages), block_pages)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the lock of the shard of a page.
    #[inline(always)]
    fn lock_page(&self, range: ByteRange) -> LockedShard<'_> {
        self.lock(pages::shard_number(range.page()))
    }

    /// Copies to a range of a page that the cache has, or that there is room and memory for.
    /// Otherwise, returns [`None`].
    #[inline(always)]
    fn write_page(
        &self,
        locked: &mut LockedShard<'_>,
        range: ByteRange,
        from: &Segments<'_, ToDisk>,
    ) -> Option<Result> {
        match locked.guard.entry(pages::index(range.page())) {
            Entry::Occupied(place) => Some(pages::write_part(
                &place,
                place.get(),
                range,
                &mut from.clone(),
            )),
            Entry::Vacant(place) if locked.share.has_room() || self.take_room(locked.share, 1) => {
                let inserted = pages::insert_segments(place, range, from);
                inserted.then(|| {
                    add(&locked.share.count, 1);
                    Ok(())
                })
            }
            Entry::Vacant(_) => self.replace_page(locked, range, from).then_some(Ok(())),
        }
    }

    /// Inserts a page, for which others are written back. Returns whether there was memory for
    /// that.
    #[inline(never)]
    fn replace_page(
        &self,
        locked: &mut LockedShard<'_>,
        range: ByteRange,
        from: &Segments<'_, ToDisk>,
    ) -> bool {
        let share = locked.share;
        while !share.has_room() && !self.take_room(share, 1) {
            let has_share = share.count.load(Relaxed) >= self.fair_share.max(1);
            if !has_share || self.write_back_next(locked, 1).is_err() {
                return false;
            }
        }
        let inserted = match locked.guard.entry(pages::index(range.page())) {
            Entry::Vacant(place) => pages::insert_segments(place, range, from),
            Entry::Occupied(_) => false,
        };
        if inserted {
            add(&share.count, 1);
        }
        inserted
    }

    /// Copies to a block, or a part of it.
    #[inline(never)]
    fn write_block(
        &self,
        flags: Flags,
        block: ByteRange,
        block_pages: usize,
        from: &mut Segments<'_, ToDisk>,
    ) -> Result {
        let number = pages::shard_number(block.page());
        let first = block.block(block_pages);
        let mut may_exceed = false;
        loop {
            let mut locked = self.lock(number);
            let lack = loop {
                if block_pages == 1 {
                    let may_insert = may_exceed || locked.share.has_room();
                    match locked.guard.entry(pages::index(first)) {
                        Entry::Occupied(place) => {
                            return pages::write_part(&place, place.get(), block, from);
                        }
                        Entry::Vacant(place) => {
                            if may_insert && pages::insert_segments(place, block, from) {
                                from.skip_bytes(block.len() as u32);
                                add(&locked.share.count, 1);
                                return Ok(());
                            }
                        }
                    }
                } else if pages::write_block(&locked.guard, block, block_pages, from)? {
                    return Ok(());
                }
                if let Err(lack) = self.add_pages(&mut locked, first, block_pages, may_exceed) {
                    break lack;
                }
            };
            // Memory is waited for with no lock held.
            drop(locked);
            match lack {
                Lack::CacheMemory => self.add_page(first, block_pages, flags)?,
                Lack::StoreMemory(victim) => {
                    match self.store.add_pages(victim, block_pages, flags) {
                        Ok(()) => (),
                        // The writer comes again, and may wait then.
                        Err(error) if flags == GFP_NOWAIT => return Err(error),
                        // Without memory, the cache is all that is left.
                        Err(_) => may_exceed = true,
                    }
                }
                Lack::Room => may_exceed |= !self.take_from_others(number, block_pages, flags),
            }
        }
    }

    /// Adds the missing pages of a block if there is room, or if the cache `may_exceed` its size.
    /// Otherwise, writes back a block. In both cases, some may still be missing.
    fn add_pages(
        &self,
        locked: &mut LockedShard<'_>,
        first: usize,
        block_pages: usize,
        may_exceed: bool,
    ) -> Result<(), Lack> {
        let is_missing = |guard: &Guard<'_>, index| guard.get(index).is_none();
        let indices = (first..first + block_pages).map(pages::index);
        let missing = indices
            .clone()
            .filter(|index| is_missing(&locked.guard, *index));
        let (missing, used) = (missing.count() as isize, locked.share.count.load(Relaxed));
        let room = locked.share.room.load(Relaxed);
        if !may_exceed && room < used + missing && !self.take_room(locked.share, missing) {
            if used < self.fair_share.max(missing) {
                return Err(Lack::Room);
            }
            return self.write_back_next(locked, block_pages).map(|_| ());
        }
        // A block of one page is inserted with its data. This is left for a page without memory.
        if block_pages == 1 && room < used + missing && !may_exceed {
            return Ok(());
        }
        for index in indices {
            if is_missing(&locked.guard, index) {
                let page = pages::zeroed(GFP_NOWAIT).map_err(|_| Lack::CacheMemory)?;
                let inserted = locked.guard.insert(index, page);
                inserted.map_err(|_| Lack::CacheMemory)?;
                add(&locked.share.count, 1);
            }
        }
        Ok(())
    }

    /// Adds a missing page of a block, waiting for memory if `flags` allow it.
    #[cold]
    fn add_page(&self, first: usize, block_pages: usize, flags: Flags) -> Result {
        for page in first..first + block_pages {
            let shard = self.pages.shard(page);
            match shard.insert(pages::index(page), pages::zeroed(flags)?, flags) {
                Ok(()) => {
                    add(&self.lock(pages::shard_number(page)).share.count, 1);
                    return Ok(());
                }
                Err(error) if error.error == EBUSY => (),
                Err(error) => return Err(error.error),
            }
        }
        Ok(())
    }

    /// Takes room for `count` more pages of a shard. Returns whether there was enough.
    fn take_room(&self, share: &Share, count: isize) -> bool {
        let room = self.room.load(Relaxed);
        // A full cache is not written to.
        if room < count {
            return false;
        }
        // What is left may be less than a portion.
        let portion = room.min(self.portion).max(count);
        if self.room.fetch_sub(portion, Relaxed) < portion {
            self.room.add(portion, Relaxed);
            return false;
        }
        add(&share.room, portion);
        true
    }

    /// Makes another shard give up room, for which it may have to write back a block. Returns
    /// `false` if none has room to spare.
    ///
    /// A shard keeps its fair share as long as others have more. Otherwise it would soon take from
    /// a third one what it has given, and the shards of a full cache would never be left alone.
    #[cold]
    fn take_from_others(&self, taker: usize, block_pages: usize, flags: Flags) -> bool {
        let start = self.victim.load(Relaxed);
        let others = (start..start + SHARDS).map(|number| number % SHARDS);
        let others = others.filter(|number| *number != taker);
        for kept in [self.fair_share, 0] {
            for number in others.clone() {
                let mut locked = self.lock(number);
                if locked.share.count.load(Relaxed) > self.fair_share {
                    if let Err(Lack::StoreMemory(victim)) =
                        self.write_back_next(&mut locked, block_pages)
                    {
                        drop(locked);
                        return self.store.add_pages(victim, block_pages, flags).is_ok();
                    }
                }
                if self.give_back(locked.share, kept) {
                    self.victim.store((number + 1) % SHARDS, Relaxed);
                    return true;
                }
            }
        }
        false
    }

    /// Makes a shard give up the room that it does not use, but for that of `kept` pages. Returns
    /// whether there was any.
    fn give_back(&self, share: &Share, kept: isize) -> bool {
        let spare = share.room.load(Relaxed) - share.count.load(Relaxed).max(kept);
        if spare > 0 {
            add(&share.room, -spare);
            self.room.add(spare, Relaxed);
        }
        spare > 0
    }

    /// Writes back the next block of a shard, or several if they are small. Returns `false` if it
    /// has no page.
    ///
    /// # Errors
    ///
    /// [`Lack::StoreMemory`] if there is no memory without waiting.
    fn write_back_next(
        &self,
        locked: &mut LockedShard<'_>,
        block_pages: usize,
    ) -> Result<bool, Lack> {
        let next = locked.share.next.load(Relaxed);
        let done = match self.write_back_first(locked, next..=usize::MAX, block_pages)? {
            None => self.write_back_first(locked, 0..=usize::MAX, block_pages)?,
            done => done,
        };
        if let Some(next) = done {
            locked.share.next.store(next, Relaxed);
        }
        Ok(done.is_some())
    }

    /// Writes back the first block of a shard in a range of indices; if it is a page, then also
    /// those behind it, up to [`Self::batch`]. Returns the index behind them; [`None`] if there is
    /// no page.
    ///
    /// # Errors
    ///
    /// [`Lack::StoreMemory`] if there is no memory without waiting.
    fn write_back_first(
        &self,
        locked: &mut LockedShard<'_>,
        indices: RangeInclusive<usize>,
        block_pages: usize,
    ) -> Result<Option<usize>, Lack> {
        let end = *indices.end();
        let Some((first, _)) = locked.guard.find(indices) else {
            return Ok(None);
        };
        let first = first & !(block_pages - 1);
        let page = pages::number(locked.number, first);
        if block_pages > 1 {
            self.write_back_block(locked, page, block_pages)?;
            return Ok(Some(first + block_pages));
        }
        // The pages of a shard of the cache are in one shard of the store.
        let mut store = self.store.lock(page);
        let mut behind = first;
        while behind <= end && behind - first < self.batch {
            let Entry::Occupied(cached) = locked.guard.entry(behind) else {
                break;
            };
            if !Self::move_page(&mut store, behind, cached) {
                break;
            }
            behind += 1;
        }
        if behind == first {
            return Err(Lack::StoreMemory(page));
        }
        add(&locked.share.count, -((behind - first) as isize));
        Ok(Some(behind))
    }

    /// Moves a page to the store. Returns whether there was memory for it.
    #[inline(always)]
    fn move_page(store: &mut store::Guard<'_>, index: usize, cached: CachedPage<'_, '_>) -> bool {
        if pages::sectors(cached.get()) != Sectors::NONE {
            match store.entry(index) {
                Entry::Vacant(place) => return cached.move_to(place).is_ok(),
                Entry::Occupied(place) => {
                    if pages::merge(&place, place.get(), cached.get()).is_err() {
                        return false;
                    }
                }
            }
        }
        drop(cached.remove());
        true
    }

    /// Moves a block to the store, as far as the cache has it.
    ///
    /// # Errors
    ///
    /// [`Lack::StoreMemory`] if there is no memory without waiting.
    fn write_back_block(
        &self,
        locked: &mut LockedShard<'_>,
        first: usize,
        block_pages: usize,
    ) -> Result<(), Lack> {
        let mut places = [const { None }; range::MAX_BLOCK_PAGES];
        for (page, place) in (first..first + block_pages).zip(&mut places) {
            let cached = locked.guard.get(pages::index(page)).map(pages::sectors);
            if cached.is_some_and(|sectors| sectors != Sectors::NONE) {
                let reserved = self.store.reserve(page);
                *place = reserved.map_err(|_| Lack::StoreMemory(first))?;
            }
        }
        // The pages that the store had may be gone: who has added them without data, and then found
        // no memory for the rest of the block, does not hold this lock.
        let merged = (first..first + block_pages)
            .zip(&places)
            .filter(|(_, place)| place.is_none())
            .filter_map(|(page, _)| Some((page, locked.guard.get(pages::index(page))?)))
            .filter(|(_, cached)| pages::sectors(cached) != Sectors::NONE);
        let merged = self.store.merge_all(first, merged);
        merged.map_err(|_| Lack::StoreMemory(first))?;
        // Now nothing can fail, so no part of a block stays behind.
        for (page, place) in (first..first + block_pages).zip(places) {
            let Some(cached) = locked.guard.remove(pages::index(page)) else {
                continue;
            };
            add(&locked.share.count, -1);
            match place {
                Some(place) => place.fill(cached),
                None => drop(cached),
            }
        }
        Ok(())
    }

    /// Moves a block to the store. Memory is allocated with `flags`.
    fn write_back(&self, flags: Flags, first: usize, block_pages: usize) -> Result {
        let (number, index) = (pages::shard_number(first), pages::index(first));
        while self
            .write_back_first(
                &mut self.lock(number),
                index..=index + block_pages - 1,
                block_pages,
            )
            .is_err()
        {
            self.store.add_pages(first, block_pages, flags)?;
        }
        Ok(())
    }

    /// Writes back all pages. Memory is allocated with `flags`.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if the store has no room for a page, which stays in the cache, as do those after
    /// it.
    pub(crate) fn flush(&self, flags: Flags) -> Result {
        let block_pages = self.store.block_pages();
        for number in 0..SHARDS {
            // What others write meanwhile, behind the block that was written back, need not be.
            let mut start = 0;
            loop {
                // Memory is waited for with no lock held.
                let done = {
                    let mut locked = self.lock(number);
                    let done = self.write_back_first(&mut locked, start..=usize::MAX, block_pages);
                    if let Ok(None) = done {
                        // What is written next, elsewhere, has all of the cache.
                        self.give_back(locked.share, 0);
                    }
                    done
                };
                match done {
                    Ok(Some(next)) => start = next,
                    Ok(None) => break,
                    Err(Lack::StoreMemory(first)) => {
                        self.store.add_pages(first, block_pages, flags)?;
                    }
                    Err(_) => return Err(ENOMEM),
                }
            }
        }
        Ok(())
    }

    /// Makes `len` bytes from byte `at` on read as zeros, here and in the store.
    pub(crate) fn discard(&self, at: u64, len: u32) -> Result {
        for range in range::regions(at, len.into())? {
            let locked = &mut self.lock(pages::shard_number(range.page()));
            self.store.discard_range(range)?;
            pages::discard(&mut locked.guard, range, |_page| {
                add(&locked.share.count, -1)
            })?;
        }
        Ok(())
    }
}
