// SPDX-License-Identifier: GPL-2.0

//! A cache of writes in front of a page store.
//!
//! What is written to it goes to pages of its own, until these are settled: their sectors are
//! copied to the store, and the pages freed. What was not settled goes with the cache, as it does
//! when a disk with a volatile cache loses power.
//!
//! # Exclusion
//!
//! Reading, settling and discarding hold the lock of the cache's leaf, if there is one, while they
//! look at the store, so nobody sees a sector in neither of them, or in the store only while the
//! cache has a newer one. Whoever writes past the cache does it through the cache for this reason.

use super::{
    copy::Memory,
    part::Part,
    range::{
        self,
        Chunk, //
    },
    read,
    remove,
    sectors::{
        self,
        Sectors, //
    },
    tree::{
        Held,
        Tree, //
    },
    write,
    PageStore, //
};
use crate::{
    bindings,
    block::bio::{
        FromDisk,
        ToDisk, //
    },
    late_drop::LateDrop,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        barrier,
        Arc, //
    },
};

/// Bytes that are written at once; no logical block goes over a multiple of it.
const PIECE: u64 = 65536;

/// The most pages of a piece.
const PIECE_PAGES: usize = (PIECE as usize).div_ceil(PAGE_SIZE);

/// How many pages are settled when there is no room.
const BATCH: usize = 16;

/// The end of the `len` bytes from `at` on, which must be whole sectors. A sector has one bit in
/// the cache, so one that is partly written would reach the store with zeros in the rest.
///
/// # Errors
///
/// [`EINVAL`] if they are not whole sectors, or end beyond the pages that can be numbered.
fn whole_sectors(at: u64, len: u64) -> Result<u64> {
    if (at | len) % sectors::GRANULE as u64 != 0 {
        return Err(EINVAL);
    }
    range::end(at, len)
}

/// A cache of writes in front of a [`PageStore`].
///
/// It is pinned, and shared freely between threads. Dropping it forgets what was not settled.
///
/// # Examples
///
/// ```
/// use kernel::{page_store::{PageStore, WriteCache}, sync::Arc};
///
/// const BLOCK: u32 = WriteCache::SMALLEST_BLOCK;
///
/// let store = Arc::pin_init(PageStore::new(BLOCK), GFP_KERNEL)?;
/// let cache = KBox::pin_init(WriteCache::new(store.clone(), 1 << 20, BLOCK), GFP_KERNEL)?;
/// assert_eq!(cache.pages(), 0);
///
/// let cache = KBox::pin_init(WriteCache::new(store, 1 << 20, 1), GFP_KERNEL);
/// assert_eq!(cache.err(), Some(EINVAL));
/// # Ok::<(), Error>(())
/// ```
#[pin_data]
pub struct WriteCache {
    tree: LateDrop<Tree>,
    store: Arc<PageStore>,
    /// The most pages to keep.
    room: usize,
    /// Where to look for pages to settle next.
    next: Atomic<usize>,
    block_pages: usize,
}

impl WriteCache {
    /// The number of bytes in the smallest logical block that a cache can tell from its neighbours:
    /// 512, but more where pages are larger than 16 KiB, e.g. 4096 where they have 64 KiB.
    pub const SMALLEST_BLOCK: u32 = sectors::GRANULE as u32;

    /// Makes an empty cache of at most `bytes`, and not less than 128 KiB, in front of `store`.
    ///
    /// Who writes at the same time may exceed that by some pages each. Logical blocks have
    /// `block_size` bytes, as those of the store.
    ///
    /// # Errors
    ///
    /// `EINVAL` if blocks are no multiple of [`Self::SMALLEST_BLOCK`]; `ENOMEM`, and what
    /// [`PageStore`] says.
    pub fn new(store: Arc<PageStore>, bytes: u64, block_size: u32) -> impl PinInit<Self, Error> {
        let pages = usize::try_from(bytes / PAGE_SIZE as u64).unwrap_or(usize::MAX);
        try_pin_init!(Self {
            _: {
                // A block that has no bit of its own would take its neighbours along, as zeros.
                if !sectors::keeps_apart(sectors::GRANULE, block_size) {
                    return Err(EINVAL);
                }
            },
            tree: Tree::new(static_lock_class!(), true)?,
            store,
            room: pages.max(2 * PIECE_PAGES),
            next: Atomic::new(0),
            block_pages: range::block_pages(block_size),
        }? Error)
    }

    /// The number of pages that are not settled, which costs nothing to ask.
    pub fn pages(&self) -> usize {
        self.tree.count()
    }

    /// Copies `len` bytes to some memory, of which there must be as much.
    pub(super) fn read_memory(
        &self,
        at: u64,
        len: usize,
        to: &mut impl Memory<FromDisk>,
    ) -> Result {
        let end = range::end(at, len as u64)?;
        let mut at = at;
        while at < end {
            let chunk = Chunk::new(at, end);
            let Some(held) = self.tree.hold(chunk.page()) else {
                // What has left the cache is seen in the store.
                barrier::smp_mb(barrier::Read);
                // Blocks come to the store as a whole, so none is mixed even if one comes now.
                self.store.read_memory(at, chunk.left(), to)?;
                at += chunk.left() as u64;
                continue;
            };
            let mut rest = chunk;
            while rest.left() > 0 {
                let block = rest.block(self.block_pages);
                self.read_block(&held, block, at, to)?;
                at += block.left() as u64;
                block.parts().for_each(|part| rest.pass(part));
            }
        }
        Ok(())
    }

    /// Copies a block, of which byte `at` is the first, with the lock of its leaf held.
    fn read_block(
        &self,
        held: &Held<'_>,
        block: Chunk,
        at: u64,
        to: &mut impl Memory<FromDisk>,
    ) -> Result {
        let cached = |part| held.page(part).map_or(Sectors::NONE, |page| page.sectors());
        if block.parts().all(|part| cached(part).is_empty()) {
            return self.store.read_memory(at, block.left(), to);
        }
        let mut at = at;
        for part in block.parts() {
            let mut rest = part;
            while rest.len() > 0 {
                let (now, later) = rest.split_where(cached(part));
                if now.touched().both(cached(part)).is_empty() {
                    self.store.read_memory(at, now.len(), to)?;
                } else {
                    read::read_part(Some(held), now, to);
                }
                at += now.len() as u64;
                rest = later;
            }
        }
        Ok(())
    }

    /// Copies `len` bytes from some memory, of which there must be as much; on to the store if
    /// `through`.
    pub(super) fn write_memory(
        &self,
        may_sleep: bool,
        through: bool,
        at: u64,
        len: usize,
        from: &mut impl Memory<ToDisk>,
    ) -> Result {
        let end = whole_sectors(at, len as u64)?;
        let mut at = at;
        while at < end {
            // Not more at once than there is room for, and whole blocks.
            let piece = (PIECE - at % PIECE).min(end - at);
            self.make_room(may_sleep);
            let (tree, pages) = (&self.tree, self.block_pages);
            write::write(tree, pages, may_sleep, at, piece as usize, from)?;
            if through {
                self.settle(Chunk::new(at, at + piece), may_sleep)?;
            }
            at += piece;
        }
        Ok(())
    }

    /// Makes `len` bytes, from byte `at` on, read as zeros, here as in the store.
    pub(super) fn remove_range(&self, may_sleep: bool, at: u64, len: u64) -> Result {
        let end = whole_sectors(at, len)?;
        let mut at = at;
        while at < end {
            let chunk = Chunk::new(at, end);
            let next = if let Some(held) = self.tree.hold(chunk.page()) {
                // Nobody settles or reads what the cache has before it is in neither of them.
                self.store.remove_range(false, at, chunk.left() as u64)?;
                remove::remove_held(held, chunk);
                at + chunk.left() as u64
            } else {
                // As in `read_memory`.
                barrier::smp_mb(barrier::Read);
                let found = self.tree.next_leaf(chunk.page());
                let next = found.map_or(end, |page| end.min((page as u64) << PAGE_SHIFT));
                // It may be this one, if somebody writes to it just now.
                let next = next.max(at + chunk.left() as u64);
                self.store.remove_range(may_sleep, at, next - at)?;
                next
            };
            if may_sleep {
                // SAFETY: The caller may sleep.
                unsafe { bindings::page_store_resched() };
            }
            at = next;
        }
        Ok(())
    }

    /// Settles all that was written before.
    pub(super) fn settle_all(&self, may_sleep: bool) -> Result {
        let mut next = Some(0);
        while let Some(page) = next.and_then(|page| self.tree.next(page)) {
            let block = Chunk::of_block(page, self.block_pages);
            self.settle(block, may_sleep)?;
            next = block.page().checked_add(self.block_pages);
        }
        Ok(())
    }

    /// Settles pages in turn until there is room for a piece.
    fn make_room(&self, may_sleep: bool) {
        while self.tree.count() + PIECE_PAGES > self.room {
            for _ in 0..BATCH {
                let Some(page) = self.tree.next(self.next.load(Relaxed)) else {
                    self.next.store(0, Relaxed);
                    break;
                };
                let block = Chunk::of_block(page, self.block_pages);
                // Behind the last block of all comes the first.
                let next = block.page().wrapping_add(self.block_pages);
                self.next.store(next, Relaxed);
                // Without memory for the store, the cache is all that is left.
                if self.settle(block, may_sleep).is_err() {
                    return;
                }
            }
        }
    }

    /// Moves the sectors of a chunk to the store, as far as the cache has them.
    fn settle(&self, chunk: Chunk, may_sleep: bool) -> Result {
        let mut rest = chunk;
        while rest.left() > 0 {
            let block = rest.block(self.block_pages);
            let mut added = false;
            while !self.try_settle(block) {
                // Memory is waited for with no lock held.
                self.store.add_pages(block, may_sleep)?;
                added = true;
            }
            if added {
                // There may have come to be nothing to settle meanwhile.
                self.store.remove_unused(block);
            }
            block.parts().for_each(|part| rest.pass(part));
        }
        if may_sleep {
            // SAFETY: The caller may sleep.
            unsafe { bindings::page_store_resched() };
        }
        Ok(())
    }

    /// Moves the sectors of a block, at once; returns `false` if the store lacks a page.
    fn try_settle(&self, block: Chunk) -> bool {
        let Some(mut held) = self.tree.hold(block.page()) else {
            return true;
        };
        let cached = |part: Part| {
            let page = held.page(part)?;
            let sectors = page.sectors().both(part.touched());
            (!sectors.is_empty()).then_some((page, sectors))
        };
        if block.parts().any(|part| cached(part).is_some()) && !self.store.take_over(block, cached)
        {
            return false;
        }
        for part in block.parts() {
            let Some(page) = held.page(part) else {
                continue;
            };
            let left = page.sectors().without(part.touched());
            if left.is_empty() {
                // Who has added it only to write to it will see that it is not there.
                held.erase(part);
            } else {
                // A byte that is not zero is in a sector that the page has.
                page.change(|_| left, |page| page.clear(part.touched()));
            }
        }
        held.prune();
        true
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
