// SPDX-License-Identifier: GPL-2.0

//! A sparse array of bytes that holds the contents of a disk in memory.
//!
//! A [`PageStore`] is what a memory-backed block device keeps its data in. It has no size: any byte
//! can be read, and is zero until it is written; pages come into being when they are first written
//! to.
//!
//! # Exclusion
//!
//! A block device promises that a logical block is read and written as a whole, not that a request
//! is. So transfers exclude each other by *unit*, which is the page, or the logical block where
//! that is larger. The lock of a unit is one bit in the `struct page` of its first page:
//!
//! ```text
//!     unit 0 (block size 8192)   unit 1                     XArray: page number -> page
//!    +------------+------------+------------+------------+
//!    | page 0 [L] | page 1     | page 2 [L] | page 3     |  L: held while a unit is copied
//!    +------------+------------+------------+------------+
//! ```
//!
//! Hence two rules. Where the first page of a unit is missing, the whole unit reads as zeros. Bytes
//! are copied into a unit only while its first page is in the store and locked.
//!
//! # Cost
//!
//! Looking up takes no lock: it is one RCU read section for 64 pages, and a page after its
//! neighbour is found without a descent. There is one locked operation for each unit, one `memcpy`
//! for each run of bytes that is contiguous on both sides, and no memory but the pages and the
//! nodes of the XArray.
//!
//! # Context
//!
//! To be used from tasks, hence from `queue_rq` and `poll`, not from interrupt handlers: one of
//! these might wait for a lock that the interrupted task holds.
//!
//! C headers: [`include/linux/xarray.h`](srctree/include/linux/xarray.h),
//! [`include/linux/bit_spinlock.h`](srctree/include/linux/bit_spinlock.h)

#![cfg(CONFIG_BLOCK)]

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
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

mod transfer;

mod exclusion;
mod tree;
mod unit;

mod page;

mod copy;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;

use self::{
    copy::Unfilled,
    page::NewPage,
    tree::Tree,
    unit::Unit, //
};

/// A sparse array of bytes, kept in pages.
///
/// It is pinned, shared freely between threads, and frees its pages when it is dropped, which may
/// sleep. Memory use is one page for each page that was written to, plus what the XArray needs to
/// find it.
///
/// # Invariants
///
/// A page with a byte that is not zero belongs to a unit whose first page is in `tree`.
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
    /// The mask of the unit of exclusion.
    mask: Atomic<u32>,
}

impl PageStore {
    /// Creates an empty store for a device with logical blocks of `block_size` bytes.
    ///
    /// The unit of exclusion is the block or the page, whichever is larger. Sizes beyond 64 KiB,
    /// which no block device has, count as 64 KiB.
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
        // INVARIANT: There are no pages.
        pin_init!(Self {
            tree <- Tree::new(),
            mask: Atomic::new(Unit::for_blocks(block_size).mask()),
        })
    }

    /// The unit of exclusion of now.
    #[inline]
    fn unit(&self) -> Unit {
        Unit::from_mask(self.mask.load(Relaxed))
    }

    /// Changes the logical block size, and the unit of exclusion with it.
    ///
    /// The contents stay. To be called while nothing is transferred, such as before a disk is added
    /// that has other blocks than the last one had: a transfer that runs meanwhile is not excluded
    /// by later ones. This may sleep.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if larger units need pages of their own and there is no memory; the old size
    /// stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// store.write_bytes(5000, b"kept")?;
    /// store.set_block_size(65536)?;
    ///
    /// let mut bytes = [0; 4];
    /// store.read_bytes(5000, &mut bytes)?;
    /// assert_eq!(&bytes, b"kept");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_block_size(&self, block_size: u32) -> Result {
        let unit = Unit::for_blocks(block_size);
        if unit > self.unit() {
            // Each unit that has pages needs its first.
            let mut index = 0;
            while let Some(found) = self.tree.next(index, usize::MAX) {
                let first = unit.first(found);
                if first != found {
                    self.tree.insert(first, NewPage::zeroed(true)?, true)?;
                }
                index = first + unit.pages();
            }
        }
        // INVARIANT: All units have their first page.
        self.mask.store(unit.mask(), Relaxed);
        Ok(())
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
    pub fn read(&self, at: u64, to: &mut Segments<'_, FromDisk>, len: u32) -> Result {
        if len > to.remaining() {
            return Err(EINVAL);
        }
        transfer::read(&self.tree, self.unit(), at, len as usize, to)
    }

    /// Copies the bytes from byte `at` of the store on into a buffer, until that is full.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the end of the range is beyond what can be addressed.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// let mut bytes = [1, 2, 3];
    /// store.read_bytes(12345, &mut bytes)?;
    /// assert_eq!(bytes, [0, 0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn read_bytes(&self, at: u64, to: &mut [u8]) -> Result {
        transfer::read(&self.tree, self.unit(), at, to.len(), &mut Unfilled(to))
    }

    /// Copies `len` bytes from the memory of a write request to the store, from byte `at` on.
    ///
    /// The memory is consumed from its start. Pages that are missing are allocated, by waiting for
    /// memory if `scope` allows it (`GFP_NOIO`), before any byte of their unit is copied.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`] if fewer than `len` bytes of memory are left, or `at + len` is beyond what can
    ///   be addressed; nothing is copied then.
    /// - [`ENOMEM`] if there is no page for a unit. Units before it were written, and their bytes
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
    #[inline]
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
    fn write_segments(
        &self,
        may_sleep: bool,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        if len > from.remaining() {
            return Err(EINVAL);
        }
        transfer::write(&self.tree, self.unit(), may_sleep, at, len as usize, from)
    }

    /// Copies a buffer into the store, from byte `at` on. This may sleep.
    ///
    /// # Errors
    ///
    /// As for [`Self::write`].
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// store.write_bytes(0, b"a boot sector")?;
    /// store.write_bytes(2, b"root")?;
    ///
    /// let mut bytes = [0; 13];
    /// store.read_bytes(0, &mut bytes)?;
    /// assert_eq!(&bytes, b"a root sector");
    /// assert_eq!(store.write_bytes(u64::MAX, b"no"), Err(EINVAL));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn write_bytes(&self, at: u64, mut from: &[u8]) -> Result {
        transfer::write(&self.tree, self.unit(), true, at, from.len(), &mut from)
    }

    /// Makes `len` bytes, from byte `at` on, read as zeros again.
    ///
    /// Units that lie wholly within the range are taken out and their pages freed, after an RCU
    /// grace period; bytes of other units are set to zero.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the end of the range is beyond what can be addressed.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// store.write_bytes(0, b"abcdef")?;
    /// store.remove(2, 2)?;
    ///
    /// let mut bytes = [0; 6];
    /// store.read_bytes(0, &mut bytes)?;
    /// assert_eq!(&bytes, b"ab\0\0ef");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn remove(&self, at: u64, len: u64) -> Result {
        transfer::remove(&self.tree, self.unit(), at, len)
    }
}
