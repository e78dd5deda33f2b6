// SPDX-License-Identifier: GPL-2.0

//! The page store itself, with what requests need of it.

use super::{
    copy::Memory,
    page::Page,
    part::Part,
    range::{
        self,
        Chunk, //
    },
    read,
    remove,
    sectors::Sectors,
    tree::Tree,
    write, //
};
use crate::{
    block::{
        bio::{
            FromDisk,
            Segments,
            ToDisk, //
        },
        mq::{
            Context,
            Scope, //
        },
    },
    prelude::*,
    static_lock_class,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// A sparse array of bytes, kept in pages.
///
/// It is pinned, shared freely between threads, and frees its pages when it is dropped, which may
/// sleep. Memory use is one page for each page that was written to, plus what the XArray needs to
/// find it.
///
/// # Examples
///
/// ```
/// use kernel::page_store::PageStore;
///
/// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
/// let mut bytes = [0xff; 6];
///
/// store.write_bytes(1 << 40, b"rnull")?;
/// store.read_bytes((1 << 40) - 1, &mut bytes)?;
/// assert_eq!(&bytes, b"\0rnull");
/// # Ok::<(), Error>(())
/// ```
#[pin_data]
pub struct PageStore {
    #[pin]
    tree: Tree,
    /// The number of pages that a logical block spans.
    block_pages: Atomic<usize>,
}

impl PageStore {
    /// Creates an empty store for a device with logical blocks of `block_size` bytes.
    ///
    /// No block, nor any page, is ever read half written. Sizes beyond 64 KiB, which no block
    /// device has, count as 64 KiB.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// #[pin_data]
    /// struct RamDisk {
    ///     #[pin]
    ///     data: PageStore,
    /// }
    ///
    /// let disk = KBox::pin_init(
    ///     pin_init!(RamDisk {
    ///         data <- PageStore::new(4096),
    ///     }),
    ///     GFP_KERNEL,
    /// )?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(block_size: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            tree <- Tree::new(static_lock_class!(), false),
            block_pages: Atomic::new(range::block_pages(block_size)),
        })
    }

    #[inline]
    fn block_pages(&self) -> usize {
        self.block_pages.load(Relaxed)
    }

    /// Changes the logical block size.
    ///
    /// The contents stay. A transfer that runs meanwhile may see old blocks or new ones, so the
    /// time for it is before a disk is added that has other blocks than the last one had.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// store.write_bytes(5000, b"kept")?;
    /// store.set_block_size(65536);
    ///
    /// let mut bytes = [0; 4];
    /// store.read_bytes(5000, &mut bytes)?;
    /// assert_eq!(&bytes, b"kept");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_block_size(&self, block_size: u32) {
        self.block_pages
            .store(range::block_pages(block_size), Relaxed);
    }

    /// The number of pages that there are now, to find out which each MiB with pages is looked at.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// store.write_bytes(0, &[1; 512])?;
    /// store.write_bytes(512, &[1; 512])?;
    /// assert_eq!(store.pages(), 1);
    /// store.remove_bytes(0, 512)?;
    /// assert_eq!(store.pages(), 1);
    /// store.remove_bytes(512, 512)?;
    /// assert_eq!(store.pages(), 0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn pages(&self) -> usize {
        self.tree.count()
    }

    /// Copies `len` bytes, from byte `at` of the store on, to the memory of a read request.
    ///
    /// The memory is consumed from its start.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if fewer than `len` bytes of memory are left, or `at + len` is beyond what can be
    /// addressed; nothing is copied then.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::bio::{FromDisk, Segments}, page_store::PageStore, prelude::*};
    ///
    /// fn serve(store: &PageStore, at: u64, mut memory: Segments<'_, FromDisk>) -> Result {
    ///     let len = memory.remaining();
    ///     store.read(at, &mut memory, len)
    /// }
    /// ```
    // What a request of a page or less needs is a part of the caller: it is less than a call costs.
    #[inline(always)]
    pub fn read(&self, at: u64, to: &mut Segments<'_, FromDisk>, len: u32) -> Result {
        if len > to.remaining() {
            return Err(EINVAL);
        }
        if self.block_pages() == 1 && read::read_at_once(&self.tree, at, len, to) {
            return Ok(());
        }
        to.apart(|to| self.read_chunks(at, to, len))
    }

    /// As [`Self::read`], of any pages.
    #[inline(never)]
    fn read_chunks(&self, at: u64, to: &mut Segments<'_, FromDisk>, len: u32) -> Result {
        self.read_memory(at, len as usize, to)
    }

    /// Copies `len` bytes from the memory of a write request to the store, from byte `at` on.
    ///
    /// The memory is consumed from its start. Pages that are missing are allocated, by waiting for
    /// memory if `scope` allows it (`GFP_NOIO`), before any byte of their block is copied.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`] if fewer than `len` bytes of memory are left, or `at + len` is beyond what can
    ///   be addressed; nothing is copied then.
    /// - [`ENOMEM`] if there is no page for a block. Blocks before it were written, and their bytes
    ///   consumed; that one and those after it are as they were.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::{bio::{Segments, ToDisk}, mq::{Context, Scope}},
    ///     page_store::PageStore,
    ///     prelude::*,
    /// };
    ///
    /// fn serve<C: Context>(
    ///     store: &PageStore,
    ///     scope: Scope<'_, C>,
    ///     at: u64,
    ///     mut memory: Segments<'_, ToDisk>,
    /// ) -> Result {
    ///     let len = memory.remaining();
    ///     store.write(scope, at, &mut memory, len)
    /// }
    /// ```
    #[inline(always)]
    pub fn write<C: Context>(
        &self,
        scope: Scope<'_, C>,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        self.write_segments(scope.may_sleep(), at, from, len)
    }

    /// As [`Self::write`], for a caller that is known to sleep or not.
    #[inline(always)]
    pub(super) fn write_segments(
        &self,
        may_sleep: bool,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        if len > from.remaining() {
            return Err(EINVAL);
        }
        if self.block_pages() == 1 && write::write_at_once(&self.tree, at, len, from) {
            return Ok(());
        }
        from.apart(|from| self.write_chunks(may_sleep, at, from, len))
    }

    /// As [`Self::write_segments`], to any pages.
    #[inline(never)]
    fn write_chunks(
        &self,
        may_sleep: bool,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        self.write_memory(may_sleep, at, len as usize, from)
    }

    /// Makes `len` bytes, from byte `at` on, read as zeros again.
    ///
    /// Pages that hold nothing else are taken out and freed, after an RCU grace period. A page
    /// knows which of its sectors of 512 bytes were written to and not wholly removed since, so it
    /// goes with the last of them, however many calls it takes.
    ///
    /// Only pages that there are cost time. Where `scope` allows it, others may run in between.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the end of the range is beyond what can be addressed.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::{mq::{Context, Scope}, Sector, Sectors},
    ///     page_store::PageStore,
    ///     prelude::*,
    /// };
    ///
    /// fn discard<C: Context>(
    ///     store: &PageStore,
    ///     scope: Scope<'_, C>,
    ///     at: Sector,
    ///     len: Sectors,
    /// ) -> Result {
    ///     store.remove(scope, at.bytes(), len.bytes())
    /// }
    /// ```
    pub fn remove<C: Context>(&self, scope: Scope<'_, C>, at: u64, len: u64) -> Result {
        self.remove_range(scope.may_sleep(), at, len)
    }

    /// Adds those pages of a block that are missing; they are zeros, as before.
    pub(super) fn add_pages(&self, block: Chunk, may_sleep: bool) -> Result {
        write::add_pages(&self.tree, block, may_sleep)
    }

    /// Copies over a block, at once, those sectors that `from` has of a part of it; returns whether
    /// the block has all the pages for that.
    pub(super) fn take_over<'a>(
        &self,
        block: Chunk,
        from: impl Fn(Part) -> Option<(Page<'a>, Sectors)>,
    ) -> bool {
        let Some(held) = self.tree.hold(block.page()) else {
            return false;
        };
        let missing = |part| from(part).is_some() && held.page(part).is_none();
        if block.parts().any(missing) {
            return false;
        }
        for part in block.parts() {
            if let (Some((source, sectors)), Some(page)) = (from(part), held.page(part)) {
                page.change(|old| old.with(sectors), |page| page.copy(source, sectors));
            }
        }
        true
    }

    /// Copies `len` bytes from some memory, of which there must be as much.
    pub(super) fn write_memory(
        &self,
        may_sleep: bool,
        at: u64,
        len: usize,
        from: &mut impl Memory<ToDisk>,
    ) -> Result {
        write::write(&self.tree, self.block_pages(), may_sleep, at, len, from)
    }

    /// Copies `len` bytes to some memory, of which there must be as much.
    pub(super) fn read_memory(
        &self,
        at: u64,
        len: usize,
        to: &mut impl Memory<FromDisk>,
    ) -> Result {
        read::read(&self.tree, self.block_pages(), at, len, to)
    }

    /// As [`Self::remove`], for a caller that is known to sleep or not.
    pub(super) fn remove_range(&self, may_sleep: bool, at: u64, len: u64) -> Result {
        remove::remove(&self.tree, may_sleep, at, len)
    }
}
