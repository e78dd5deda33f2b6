// SPDX-License-Identifier: GPL-2.0

//! A range of bytes of a request within one page.
//!
//! A process may have mapped the pages of a request, and two requests may transfer the same page at
//! the same time, so the bytes can change at any moment. No Rust reference to them is created. They
//! are accessed only by C's `memcpy()` and `memset()`, so the worst effect of a race is a mixture
//! of old and new bytes.
//!
//! File systems also submit memory of their own, which may come from `kmalloc()`. Submitting the
//! bytes gives up exclusive access to them until the request has ended, so safe code holds no
//! reference to them.
//!
//! C header: [`include/linux/highmem.h`](srctree/include/linux/highmem.h)

use crate::{
    bindings,
    folio::Folio,
    page::PAGE_SIZE,
    prelude::*, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

mod sealed {
    pub trait Sealed {
        /// Whether the driver fills the memory.
        const FILLS: bool;
    }
}

/// The direction of a data transfer: [`FromDisk`] or [`ToDisk`].
///
/// # Examples
///
/// ```
/// use kernel::block::bio::{Direction, Segments};
///
/// /// Counts the pages of a request of either direction.
/// fn pages<D: Direction>(data: Segments<'_, D>) -> usize {
///     data.count()
/// }
/// ```
pub trait Direction: sealed::Sealed {}

/// The bytes of a read, which the driver writes to memory.
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::{FromDisk, Segment}, prelude::*};
///
/// fn stamp(memory: &Segment<'_, FromDisk>) -> Result {
///     memory.write(0, b"rnull")
/// }
/// ```
pub enum FromDisk {}

/// The bytes of a write, which the driver reads from memory and must not change.
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::{Segment, ToDisk}, prelude::*};
///
/// fn stamp(memory: &Segment<'_, ToDisk>) -> Result<[u8; 5]> {
///     let mut bytes = [0; 5];
///     memory.read(0, &mut bytes)?;
///     Ok(bytes)
/// }
/// ```
pub enum ToDisk {}

impl sealed::Sealed for FromDisk {
    const FILLS: bool = true;
}
impl sealed::Sealed for ToDisk {
    const FILLS: bool = false;
}
impl Direction for FromDisk {}
impl Direction for ToDisk {}

/// A range of a request's bytes within one page.
///
/// It has at least one byte and may start and end anywhere, also inside a sector. It borrows from
/// the request, so it cannot outlive it, and it cannot be sent to another task.
///
/// # Invariants
///
/// `bytes` belongs to the memory of a request that does not end during `'a`. That memory may be
/// written if `D` is [`FromDisk`], and read if it is [`ToDisk`].
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::{Segments, ToDisk}, prelude::*};
///
/// /// Adds up the first byte of each segment.
/// fn sum(data: Segments<'_, ToDisk>) -> Result<u32> {
///     let mut sum = 0;
///     for segment in data {
///         let mut byte = [0];
///         segment.read(0, &mut byte)?;
///         sum += u32::from(byte[0]);
///     }
///     Ok(sum)
/// }
/// ```
pub struct Segment<'a, D: Direction> {
    bytes: BvecPage<'a>,
    _direction: PhantomData<D>,
}

impl<'a, D: Direction> Segment<'a, D> {
    /// Creates a segment of a range of bytes.
    ///
    /// # Safety
    ///
    /// `bytes` must belong to the memory of a request that does not end during `'a`. That memory
    /// may be written if `D` is [`FromDisk`], and read if it is [`ToDisk`].
    #[inline]
    pub(super) unsafe fn new(bytes: BvecPage<'a>) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            bytes,
            _direction: PhantomData,
        }
    }

    /// Returns the number of bytes, from 1 to `PAGE_SIZE`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// fn longest<D: Direction>(data: Segments<'_, D>) -> usize {
    ///     data.map(|segment| segment.size()).max().unwrap_or(0)
    /// }
    /// ```
    #[inline]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl Segment<'_, ToDisk> {
    /// Copies the bytes at offset `at` to `to`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the segment ends before `to` is full. In that case nothing is copied.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::bio::{Segment, ToDisk}, prelude::*};
    ///
    /// fn last_byte(segment: &Segment<'_, ToDisk>) -> Result<u8> {
    ///     let mut byte = [0];
    ///     segment.read(segment.size() - 1, &mut byte)?;
    ///     Ok(byte[0])
    /// }
    /// ```
    #[inline]
    pub fn read(&self, at: usize, to: &mut [u8]) -> Result {
        self.bytes.flush();
        self.bytes.read(at, to)
    }
}

impl Segment<'_, FromDisk> {
    /// Copies `from` to the bytes at offset `at`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the segment ends before `from` does. In that case nothing is copied.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::bio::{FromDisk, Segment}, prelude::*};
    ///
    /// fn mark_end(segment: &Segment<'_, FromDisk>) -> Result {
    ///     segment.write(segment.size() - 1, &[0x55])
    /// }
    /// ```
    #[inline]
    pub fn write(&self, at: usize, from: &[u8]) -> Result {
        // This flushes the page after the copy.
        self.bytes.write(at, from)
    }

    /// Sets all bytes of the segment to `byte`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{FromDisk, Segments};
    ///
    /// /// Fills each segment with a different value.
    /// fn stripe(data: Segments<'_, FromDisk>) {
    ///     for (segment, byte) in data.zip((0..=255).cycle()) {
    ///         segment.fill(byte);
    ///     }
    /// }
    /// ```
    #[inline]
    pub fn fill(&self, byte: u8) {
        self.bytes.fill(byte);
        self.bytes.flush();
    }
}

/// Bytes of a request that are mapped, which are filled if `D` is [`FromDisk`] and read if it is
/// [`ToDisk`].
///
/// As with a [`Segment`], the owner may change the bytes at any time, so no reference to them is
/// created. Unlike a segment, they may be in several pages.
///
/// # Invariants
///
/// During `'a`, C's `memcpy` may write the `len` bytes at `at` if `D` is [`FromDisk`], and read
/// them if it is [`ToDisk`].
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::bio::{FromDisk, Segments},
///     folio::Folio,
///     page::PAGE_SIZE, //
/// };
///
/// /// Fills memory with copies of a page. Returns how many whole pages were contiguous.
/// fn repeat(memory: &mut Segments<'_, FromDisk>, page: &Folio) -> Option<usize> {
///     memory.with_mapped(usize::MAX, |bytes| {
///         let mut count = 0;
///         while let Some(next) = bytes.split_off(PAGE_SIZE) {
///             next.copy_from_folio(page, 0).ok()?;
///             count += 1;
///         }
///         Some(count)
///     })?
/// }
/// ```
pub struct MappedBytes<'a, D: Direction> {
    at: *mut u8,
    len: usize,
    _borrow: PhantomData<(&'a (), D)>,
}

impl<D: Direction> MappedBytes<'_, D> {
    /// Creates a handle to a range of bytes.
    ///
    /// # Safety
    ///
    /// During the lifetime of the result, the `len` bytes at `at` must be valid, for writes by C's
    /// `memcpy` if `D` is [`FromDisk`], for reads by it otherwise.
    #[inline]
    pub(super) unsafe fn new(at: *mut u8, len: usize) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            at,
            len,
            _borrow: PhantomData,
        }
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first `len` bytes. Returns [`None`] if there are fewer.
    #[inline]
    pub fn first(&self, len: usize) -> Option<MappedBytes<'_, D>> {
        // INVARIANT: They are some of the bytes.
        (len <= self.len).then_some(MappedBytes { len, ..*self })
    }

    /// Iterates over chunks of `size` bytes, which must not be 0. Leaves out a shorter chunk at the
    /// end.
    #[inline]
    pub fn chunks(&self, size: usize) -> Chunks<'_, D> {
        // INVARIANT: That many chunks are within the range.
        Chunks {
            at: self.at,
            size,
            count: self.len.checked_div(size).unwrap_or(0),
            _borrow: PhantomData,
        }
    }

    /// Splits off the first `len` bytes. Returns [`None`] if there are fewer.
    #[inline]
    pub fn split_off(&mut self, len: usize) -> Option<Self> {
        if len > self.len {
            return None;
        }
        let first = Self { len, ..*self };
        // INVARIANT: The end of the range does not change.
        self.at = self.at.wrapping_add(len);
        self.len -= len;
        Some(first)
    }
}

/// An iterator over chunks of [`MappedBytes`], all of the same size.
///
/// # Invariants
///
/// The next `count * size` bytes from `at` on are as those of a `MappedBytes<'a, D>`.
pub struct Chunks<'a, D: Direction> {
    at: *mut u8,
    size: usize,
    count: usize,
    _borrow: PhantomData<(&'a [u8], D)>,
}

impl<'a, D: Direction> Iterator for Chunks<'a, D> {
    type Item = MappedBytes<'a, D>;

    #[inline(always)]
    fn next(&mut self) -> Option<MappedBytes<'a, D>> {
        self.count = self.count.checked_sub(1)?;
        // INVARIANT: By the type invariants there are `size` bytes.
        let chunk = MappedBytes {
            at: self.at,
            len: self.size,
            _borrow: PhantomData,
        };
        // INVARIANT: These are the bytes after the chunk.
        self.at = self.at.wrapping_add(self.size);
        Some(chunk)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl<D: Direction> ExactSizeIterator for Chunks<'_, D> {}

impl MappedBytes<'_, FromDisk> {
    /// Fills the bytes with those of a folio from `offset` on.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the folio has fewer. In that case nothing is copied.
    #[inline(always)]
    pub fn copy_from_folio<P: Send + Sync + 'static>(
        &self,
        folio: &Folio<P>,
        offset: usize,
    ) -> Result {
        // SAFETY: By the type invariants the bytes may be written. They are not those of the folio:
        // a `FolioBox` has allocated it, and its pages are in no bio.
        unsafe { folio.copy_to_raw(offset, self.at, self.len) }
    }

    /// Sets all bytes to zero.
    #[inline]
    pub fn zero(&self) {
        // SAFETY: By the type invariants the bytes may be written.
        unsafe { bindings::memset_bytes(self.at.cast(), 0, self.len) };
    }
}

impl MappedBytes<'_, ToDisk> {
    /// Copies the bytes to a folio, from `offset` on.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the folio has no room for them. In that case nothing is copied.
    #[inline(always)]
    pub fn copy_to_folio<P: Send + Sync + 'static>(
        &self,
        folio: &Folio<P>,
        offset: usize,
    ) -> Result {
        // SAFETY: By the type invariants the bytes may be read; as in `copy_from_folio`.
        unsafe { folio.copy_from_raw(offset, self.at, self.len) }
    }
}

/// The bytes from `offset` to `offset + len` of a page.
///
/// # Invariants
///
/// - `page` points to a page that stays allocated for `'a`.
/// - `offset + len <= PAGE_SIZE`.
/// - The owner of the bytes gives access to them for `'a`: no reference to them exists.
#[derive(Clone, Copy)]
pub(crate) struct BvecPage<'a> {
    page: NonNull<bindings::page>,
    offset: usize,
    len: usize,
    _page: PhantomData<&'a bindings::page>,
}

impl BvecPage<'_> {
    /// Creates a handle to a range of bytes.
    ///
    /// # Safety
    ///
    /// - `page` must point to a page that stays allocated for the lifetime of the result.
    /// - `offset + len` must not exceed `PAGE_SIZE`.
    /// - No reference to the bytes exists during that lifetime. The bytes may be read, or written,
    ///   as the user of the result will do.
    #[inline]
    pub(crate) unsafe fn new(page: NonNull<bindings::page>, offset: usize, len: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            page,
            offset,
            len,
            _page: PhantomData,
        }
    }

    /// Returns the number of bytes, at most `PAGE_SIZE`.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Checks that `at..at + len` is within the range. Returns its offset in the page.
    #[inline]
    fn within(&self, at: usize, len: usize) -> Result<usize> {
        if at > self.len || len > self.len - at {
            return Err(EINVAL);
        }
        Ok(self.offset + at)
    }

    /// Copies the bytes at offset `at` to `to`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the range ends before `to` is full. In that case nothing is copied.
    #[inline]
    pub(crate) fn read(self, at: usize, to: &mut [u8]) -> Result {
        let offset = self.within(at, to.len())?;
        // SAFETY: By the type invariants the page is allocated, and `offset` and the length were
        // checked. Also by the type invariants, no reference to the bytes exists, so `to` does not
        // overlap them.
        unsafe {
            bindings::memcpy_from_page(to.as_mut_ptr().cast(), self.page.as_ptr(), offset, to.len())
        };
        Ok(())
    }

    /// Copies `from` to the bytes at offset `at`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the range ends before `from` does. In that case nothing is copied.
    #[inline]
    pub(crate) fn write(self, at: usize, from: &[u8]) -> Result {
        let offset = self.within(at, from.len())?;
        // SAFETY: By the type invariants the page is allocated, and `offset` and the length were
        // checked. Also by the type invariants, no reference to the bytes exists, so `from` does
        // not overlap them.
        unsafe {
            bindings::memcpy_to_page(self.page.as_ptr(), offset, from.as_ptr().cast(), from.len())
        };
        Ok(())
    }

    /// Sets every byte to `byte`.
    #[inline]
    pub(crate) fn fill(self, byte: u8) {
        // SAFETY: By the type invariants the page is allocated, and the range ends within it.
        unsafe { bindings::memset_page(self.page.as_ptr(), self.offset, byte.into(), self.len) };
    }

    /// Makes writes through user mappings of the page visible to the kernel, and the reverse.
    ///
    /// Does nothing on architectures without data cache aliases.
    #[inline]
    pub(crate) fn flush(self) {
        // SAFETY: By the type invariants the page is allocated.
        unsafe { bindings::flush_dcache_page(self.page.as_ptr()) };
    }
}

const _: () = assert!(PAGE_SIZE <= u32::MAX as usize);
