// SPDX-License-Identifier: GPL-2.0

//! The page store itself.

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
    block::bio::{
        FromDisk,
        Segments,
        ToDisk, //
    },
    late_drop::LateDrop,
    prelude::*,
    static_lock_class,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// A sparse array of bytes, kept in pages.
///
/// It is pinned, shared freely between threads, and frees its pages when it is dropped. That waits
/// for RCU; where the caller may not wait, a worker does it a little later. Memory use is one page
/// for each page that was written to, plus what the XArray needs to find it.
///
/// # Errors
///
/// A store, as a [`WriteCache`](super::WriteCache), makes sure of the code that is to free its
/// pages. To make one fails with `EAGAIN` while the parameters of the module are being parsed, and
/// with `ENOTSUPP` in a module for a kernel without sysfs. Where this code is built in, it does
/// not.
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
    tree: LateDrop<Tree>,
    /// The number of pages that a logical block spans.
    block_pages: Atomic<usize>,
}

impl PageStore {
    /// Creates an empty store for a device with logical blocks of `block_size` bytes.
    ///
    /// No block, nor any page, is ever read half written. Sizes beyond 64 KiB, which no block
    /// device has, count as 64 KiB.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`], and what [`PageStore`] says.
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
    ///     try_pin_init!(RamDisk {
    ///         data <- PageStore::new(4096),
    ///     }),
    ///     GFP_KERNEL,
    /// )?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(block_size: u32) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            tree: Tree::new(static_lock_class!(), false)?,
            block_pages: Atomic::new(range::block_pages(block_size)),
        }? Error)
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
    /// It takes no lock, so it may be called anywhere, and pages that come or go meanwhile may be
    /// counted or not.
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

    /// Copies `len` bytes to the memory of a request at once, if they are in one page and no block
    /// has more; else nothing is done and [`None`] returned.
    #[inline(always)]
    pub(super) fn read_at_once(
        &self,
        at: u64,
        to: &mut Segments<'_, FromDisk>,
        len: u32,
    ) -> Option<Result> {
        if self.block_pages() != 1 {
            return None;
        }
        read::read_at_once(&self.tree, at, len, to)
    }

    /// Copies `len` bytes from the memory of a request at once, if they go to one page and no block
    /// has more; else nothing is done and [`None`] returned.
    #[inline(always)]
    pub(super) fn write_at_once(
        &self,
        may_sleep: bool,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Option<Result> {
        if self.block_pages() != 1 {
            return None;
        }
        write::write_at_once(&self.tree, may_sleep, at, len, from)
    }

    /// Adds those pages of a block that are missing, all or none; they are zeros, as before.
    pub(super) fn add_pages(&self, block: Chunk, may_sleep: bool) -> Result {
        write::add_pages(&self.tree, block, may_sleep)
    }

    /// Takes out those pages of a block that hold nothing.
    pub(super) fn remove_unused(&self, block: Chunk) {
        write::remove_unused(&self.tree, block)
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

    /// Makes `len` bytes, from byte `at` on, read as zeros again.
    pub(super) fn remove_range(&self, may_sleep: bool, at: u64, len: u64) -> Result {
        remove::remove(&self.tree, may_sleep, at, len)
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
