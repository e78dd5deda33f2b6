// SPDX-License-Identifier: GPL-2.0

//! Sparse arrays of pages, which hold the data of a memory-backed disk or of its write cache.
//!
//! There are 64 XArrays, which take turns by region of 1 MiB:
//!
//! ```text
//!     shard      0        1        2             63
//!             +------+ +------+ +------+      +------+
//!     regions | 0    | | 1    | | 2    |  ..  | 63   |
//!             | 64   | | 65   | | 66   |      | 127  |
//!             | ..   | | ..   | | ..   |      | ..   |
//! ```
//!
//! A writer holds the lock of a shard. Jobs that use different regions share neither a lock nor a
//! cache line, unless the regions are a multiple of 64 MiB apart.

use crate::{
    range::{
        self,
        ByteRange,
        REGION_PAGES, //
    },
    sectors::Sectors, //
};
use core::mem;
use kernel::{
    alloc::{
        flags::{
            __GFP_HIGHMEM,
            __GFP_NOWARN,
            __GFP_ZERO, //
        },
        Flags,
    },
    block::bio::{
        Contiguous,
        FromDisk,
        MappedBytes,
        Segments,
        ToDisk, //
    },
    folio::{
        Folio,
        FolioBox, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        seqcount::SeqCount,
        LockClassKey, //
    },
    xarray::{
        Guard,
        Mode,
        VacantEntry,
        XArray, //
    },
};

/// The number of XArrays.
pub(crate) const SHARDS: usize = 64;

/// The private word of a page: a sequence counter, and the sectors that hold data.
type State = SeqCount<{ Sectors::WIDTH }>;

/// A page: a folio of order 0. A byte that is not zero is in a sector that holds data.
pub(crate) type Page = Folio<State>;

/// The owner of a page.
pub(crate) type PageBox = FolioBox<State>;

/// The pages of every 64th region.
pub(crate) type Shard<M> = XArray<PageBox, M>;

/// A shard with data of type `T`, on cache lines of its own.
#[pin_data]
#[repr(align(64))]
struct Aligned<T, M: Mode<PageBox>> {
    #[pin]
    pages: Shard<M>,
    data: T,
}

/// Pages by their numbers. Each shard has data of type `T`.
pub(crate) struct Pages<T, M: Mode<PageBox>> {
    shards: Pin<KBox<[Aligned<T, M>; SHARDS]>>,
}

/// Returns the number of the shard that has a page.
#[inline]
pub(crate) fn shard_number(page: usize) -> usize {
    page / REGION_PAGES % SHARDS
}

/// Returns the index that a page has in its shard.
#[inline]
pub(crate) fn index(page: usize) -> usize {
    page / REGION_PAGES / SHARDS * REGION_PAGES + page % REGION_PAGES
}

/// Returns the page that has an index in a shard.
pub(crate) fn number(shard: usize, index: usize) -> usize {
    (index / REGION_PAGES * SHARDS + shard) * REGION_PAGES + index % REGION_PAGES
}

impl<T, M: Mode<PageBox>> Pages<T, M> {
    /// Creates arrays without pages, whose locks have this name and class. Each shard gets what
    /// `data` returns.
    pub(crate) fn new(
        name: &'static CStr,
        class: Pin<&'static LockClassKey>,
        data: fn() -> T,
    ) -> Result<Self> {
        let shard = move |_| {
            try_pin_init!(Aligned {
                pages <- XArray::new(name, class),
                data: data(),
            }? Error)
        };
        Ok(Self {
            shards: KBox::pin_init(pin_init::pin_init_array_from_fn(shard), GFP_KERNEL)?,
        })
    }

    /// Returns the shard of a page.
    #[inline]
    pub(crate) fn shard(&self, page: usize) -> &Shard<M> {
        &self.shards[shard_number(page)].pages
    }

    /// Returns the shard with a number, and its data.
    #[inline]
    pub(crate) fn by_number(&self, shard: usize) -> (&Shard<M>, &T) {
        let shard = &self.shards[shard % SHARDS];
        (&shard.pages, &shard.data)
    }
}

/// Allocates a page of zeros.
pub(crate) fn zeroed(flags: Flags) -> Result<PageBox> {
    let flags = flags | __GFP_ZERO | __GFP_HIGHMEM | __GFP_NOWARN;
    PageBox::new(0, flags, State::new(Sectors::NONE.bits()))
}

/// Allocates a page, without waiting, whose bytes outside of `range` are zeros. The others are
/// unspecified, and to be written.
#[inline]
pub(crate) fn uninit(range: ByteRange) -> Result<PageBox> {
    let flags = GFP_NOWAIT | __GFP_HIGHMEM;
    let state = State::new(touched(range).bits());
    if range.is_page() {
        PageBox::new(0, flags, state)
    } else {
        PageBox::new(0, flags | __GFP_ZERO, state)
    }
}

/// Returns the sectors with a byte in a range of a page.
#[inline(always)]
pub(crate) fn touched(range: ByteRange) -> Sectors {
    // All bytes of the range are in the page.
    if range.len() == PAGE_SIZE {
        Sectors::ALL
    } else {
        Sectors::touched(range.offset(), range.len())
    }
}

/// Returns the sectors of a page that hold data.
#[inline]
pub(crate) fn sectors(page: &Page) -> Sectors {
    Sectors::from_bits(page.private().data())
}

/// Changes a page by `change`. It holds the sectors that `sectors` makes of those from before.
#[inline(always)]
fn change<G>(
    page: &Page,
    guard: &G,
    sectors: impl FnOnce(Sectors) -> Sectors,
    change: impl FnOnce() -> Result,
) -> Result {
    let mut done = Ok(());
    page.private().write(guard, |data| {
        done = change();
        sectors(Sectors::from_bits(data)).bits()
    });
    done
}

/// Copies the sectors of another page that hold data.
pub(crate) fn merge<G>(guard: &G, page: &Page, from: &Page) -> Result {
    let sectors = sectors(from);
    change(
        page,
        guard,
        |old| old.with(sectors),
        || {
            sectors
                .bytes()
                .try_for_each(|(at, len)| page.copy_from_folio(at, from, at, len))
        },
    )
}

/// Copies a range from the pages that `next` returns, which are zeros if they are missing.
pub(crate) fn read_parts<'a>(
    range: ByteRange,
    mut next: impl FnMut() -> Option<&'a Page>,
    to: &mut Segments<'_, FromDisk>,
) -> Result {
    if range.whole_pages() * PAGE_SIZE == range.len() {
        if let Some(done) = read_whole_pages(range.len(), &mut next, to) {
            return done;
        }
    }
    for part in range.parts() {
        match next() {
            Some(page) => to.copy_from_folio(page, part.offset(), part.len())?,
            None => to.zero(part.len()),
        }
    }
    Ok(())
}

/// Copies `len` bytes from whole pages. Returns [`None`] if the bytes do not go to one place: then
/// nothing was copied.
#[inline(always)]
fn read_whole_pages<'a>(
    len: usize,
    mut next: impl FnMut() -> Option<&'a Page>,
    to: &mut Segments<'_, FromDisk>,
) -> Option<Result> {
    to.with_mapped(len, |bytes| {
        let whole = bytes.split_off(len)?;
        for to in whole.chunks(PAGE_SIZE) {
            match next() {
                Some(page) => {
                    if let Err(error) = to.copy_from_folio(page, 0) {
                        return Some(Err(error));
                    }
                }
                None => to.zero(),
            }
        }
        Some(Ok(()))
    })?
}

/// Copies to a range of a page.
#[inline(always)]
pub(crate) fn write_part<G>(
    guard: &G,
    page: &Page,
    range: ByteRange,
    from: &mut Segments<'_, ToDisk>,
) -> Result {
    let write = page.private().begin_write(guard);
    let sectors = Sectors::from_bits(write.data()).with(touched(range));
    let done = from.copy_to_folio(page, range.offset(), range.len());
    write.end(sectors.bits());
    done
}

/// Copies all of `from` to a range of a page that is as long.
#[inline(always)]
pub(crate) fn write_bytes<G>(
    guard: &G,
    page: &Page,
    range: ByteRange,
    from: &Contiguous<'_, ToDisk>,
) -> Result {
    let write = page.private().begin_write(guard);
    let sectors = Sectors::from_bits(write.data()).with(touched(range));
    let done = from.copy_to_folio(page, range.offset());
    write.end(sectors.bits());
    done
}

/// Copies to a block of `block_pages` pages, or a part of it, while the sequence counter of its
/// first page says so. Returns `false` if a page of the block is missing.
pub(crate) fn write_block<M: Mode<PageBox>>(
    guard: &Guard<'_, PageBox, M>,
    range: ByteRange,
    block_pages: usize,
    from: &mut Segments<'_, ToDisk>,
) -> Result<bool> {
    let first = range.block(block_pages);
    let mut cursor = guard.cursor(index(first));
    let mut pages = [None; range::MAX_BLOCK_PAGES];
    for page in pages.iter_mut().take(block_pages) {
        *page = cursor.next();
        if page.is_none() {
            return Ok(false);
        }
    }
    let Some(owner) = pages[0] else {
        return Ok(false);
    };
    let write = owner.private().begin_write(guard);
    let sectors = Sectors::from_bits(write.data());
    let done = if range.len() == block_pages * PAGE_SIZE {
        let pages = pages.iter().flatten().copied();
        write_whole_block(guard, pages, range.len(), from)
    } else {
        None
    };
    let (sectors, done) = match done {
        Some(done) => (Sectors::ALL, done),
        None => {
            let mut sectors = sectors;
            let mut pages = range.parts().map(|part| (part, pages[part.page() - first]));
            let done = pages.try_for_each(|(part, page)| match page {
                Some(page) if part.page() == first => {
                    sectors = sectors.with(touched(part));
                    from.copy_to_folio(page, part.offset(), part.len())
                }
                Some(page) => write_part(guard, page, part, from),
                None => Ok(()),
            });
            (sectors, done)
        }
    };
    write.end(sectors.bits());
    done.map(|()| true)
}

/// Copies to all pages of a block, the first of which is being written. Returns [`None`] if the
/// bytes are not contiguous.
#[inline(always)]
fn write_whole_block<'p, G>(
    guard: &G,
    pages: impl Iterator<Item = &'p Page>,
    len: usize,
    from: &mut Segments<'_, ToDisk>,
) -> Option<Result> {
    from.with_mapped(len, |bytes| {
        let whole = bytes.split_off(len)?;
        let mut is_first = true;
        for (page, from) in pages.zip(whole.chunks(PAGE_SIZE)) {
            let write = (!mem::take(&mut is_first)).then(|| page.private().begin_write(guard));
            let done = from.copy_to_folio(page, 0);
            if let Some(write) = write {
                write.end(Sectors::ALL.bits());
            }
            if done.is_err() {
                return Some(done);
            }
        }
        Some(Ok(()))
    })?
}

/// Inserts a page with the next bytes, which are not skipped. Returns `false` if there is no memory
/// without waiting.
#[inline(never)]
pub(crate) fn insert_segments<M: Mode<PageBox>>(
    place: VacantEntry<'_, '_, PageBox, M>,
    part: ByteRange,
    from: &Segments<'_, ToDisk>,
) -> bool {
    let Ok(page) = uninit(part) else {
        return false;
    };
    from.clone()
        .copy_to_folio(&page, part.offset(), part.len())
        .is_ok()
        && place.insert(page).is_ok()
}

/// Inserts a page with the first bytes. Returns `false` if there are too few, or if there is no
/// memory without waiting.
#[inline(always)]
pub(crate) fn insert<M: Mode<PageBox>>(
    place: VacantEntry<'_, '_, PageBox, M>,
    part: ByteRange,
    from: &MappedBytes<'_, ToDisk>,
) -> bool {
    let (Some(from), Ok(page)) = (from.first(part.len()), uninit(part)) else {
        return false;
    };
    from.copy_to_folio(&page, part.offset()).is_ok() && place.insert(page).is_ok()
}

/// Makes a range read as zeros. Calls `free` with the pages that hold no data then.
pub(crate) fn discard<'a, M: Mode<PageBox>>(
    guard: &mut Guard<'a, PageBox, M>,
    range: ByteRange,
    mut free: impl FnMut(M::Removed<'a>),
) -> Result {
    if range.is_page() {
        guard.remove(index(range.page())).map(free);
        return Ok(());
    }
    let mut rest = range;
    while let Some((found, _)) = guard.find(index(rest.page())..=index(range.last_page())) {
        // All pages of a range are in one region, so their indices are consecutive.
        rest.skip_to(rest.page() + (found - index(rest.page())));
        discard_part(guard, rest.split_off_page())?.map(&mut free);
        if rest.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Makes a range of a page read as zeros. Returns the page if it holds no data then.
fn discard_part<'a, M: Mode<PageBox>>(
    guard: &mut Guard<'a, PageBox, M>,
    range: ByteRange,
) -> Result<Option<M::Removed<'a>>> {
    let index = index(range.page());
    let Some(page) = guard.get(index) else {
        return Ok(None);
    };
    let left = sectors(page).without(Sectors::within(range.offset(), range.len()));
    if left == Sectors::NONE {
        return Ok(guard.remove(index));
    }
    change(
        page,
        guard,
        |_| left,
        || page.zero(range.offset(), range.len()),
    )?;
    Ok(None)
}
