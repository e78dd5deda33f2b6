// SPDX-License-Identifier: GPL-2.0

//! Ranges of bytes of a disk.
//!
//! They are divided into regions, blocks and pages.

use core::iter;
use kernel::{
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
};

/// The number of bytes of a region, which writers lock as a whole.
const REGION_SIZE: u64 = 1 << 20;

/// The number of pages of a region.
pub(crate) const REGION_PAGES: usize = REGION_SIZE as usize / PAGE_SIZE;

/// The most pages that a logical block spans: no block device has blocks beyond 64 KiB.
pub(crate) const MAX_BLOCK_PAGES: usize = if PAGE_SIZE < 65536 {
    65536 / PAGE_SIZE
} else {
    1
};

// A block is within a region.
const _: () = assert!(MAX_BLOCK_PAGES <= REGION_PAGES && REGION_PAGES.is_power_of_two());

/// Returns how many pages a block of so many bytes spans, which is a power of two.
pub(crate) fn block_pages(block_size: u32) -> usize {
    (block_size as usize)
        .div_ceil(PAGE_SIZE)
        .clamp(1, MAX_BLOCK_PAGES)
        .next_power_of_two()
}

/// A range of bytes in one region. It may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    at: u64,
    len: usize,
}

/// Divides the `len` bytes from `at` on into ranges, one for each region.
///
/// # Errors
///
/// [`EINVAL`] if the end is beyond what can be addressed by the number of a page.
#[inline]
pub(crate) fn regions(at: u64, len: u64) -> Result<impl Iterator<Item = ByteRange>> {
    let end = at.checked_add(len).ok_or(EINVAL)?;
    // On 64-bit machines this is always so.
    usize::try_from(end >> PAGE_SHIFT).map_err(|_| EINVAL)?;
    let mut at = at;
    Ok(iter::from_fn(move || {
        let room = REGION_SIZE - at % REGION_SIZE;
        let range = ByteRange {
            at,
            len: end.wrapping_sub(at).min(room) as usize,
        };
        at = at.wrapping_add(range.len as u64);
        (!range.is_empty()).then_some(range)
    }))
}

impl ByteRange {
    /// Returns the `len` bytes from `at` on; [`None`] if there are none, or if they are not all in
    /// one page, or if the page has no number.
    #[inline]
    pub(crate) fn in_page(at: u64, len: u32) -> Option<Self> {
        let range = Self {
            at,
            len: len as usize,
        };
        // On 64-bit machines the first is always so.
        (usize::try_from(at >> PAGE_SHIFT).is_ok() && !range.is_empty() && range.is_in_page())
            .then_some(range)
    }

    /// Returns the `len` bytes from `at` on; [`None`] if there are none, or if they are not all in
    /// one region, or if a page has no number.
    #[inline]
    pub(crate) fn in_region(at: u64, len: u32) -> Option<Self> {
        let fits = u64::from(len) <= REGION_SIZE - at % REGION_SIZE;
        // On 64-bit machines the first is always so.
        (usize::try_from(at >> PAGE_SHIFT).is_ok() && len != 0 && fits).then_some(Self {
            at,
            len: len as usize,
        })
    }

    /// Returns the number of bytes.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the number of the page with the first byte.
    #[inline]
    pub(crate) fn page(self) -> usize {
        (self.at >> PAGE_SHIFT) as usize
    }

    /// Returns the number of the page with the last byte. The range must not be empty.
    #[inline]
    pub(crate) fn last_page(self) -> usize {
        (self.at.wrapping_add(self.len as u64).wrapping_sub(1) >> PAGE_SHIFT) as usize
    }

    /// Returns the offset of the first byte in its page.
    #[inline]
    pub(crate) fn offset(self) -> usize {
        self.at as usize % PAGE_SIZE
    }

    /// Returns whether the range is a page.
    #[inline]
    pub(crate) fn is_page(self) -> bool {
        self.len == PAGE_SIZE && self.offset() == 0
    }

    /// Returns whether all bytes are in one page.
    #[inline]
    pub(crate) fn is_in_page(self) -> bool {
        self.len <= PAGE_SIZE - self.offset()
    }

    /// Returns how many whole pages the range starts with.
    #[inline]
    pub(crate) fn whole_pages(self) -> usize {
        if self.offset() == 0 {
            self.len / PAGE_SIZE
        } else {
            0
        }
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    #[inline]
    pub(crate) fn first(self, len: usize) -> Self {
        Self {
            len: len.min(self.len),
            ..self
        }
    }

    /// Splits off the first `len` bytes, or all if there are fewer.
    #[inline]
    pub(crate) fn split_off(&mut self, len: usize) -> Self {
        let first = self.first(len);
        self.at = self.at.wrapping_add(first.len as u64);
        self.len -= first.len;
        first
    }

    /// Splits off the bytes that are in the same page as the first.
    #[inline]
    pub(crate) fn split_off_page(&mut self) -> Self {
        self.split_off(PAGE_SIZE - self.offset())
    }

    /// Splits off the bytes that are in the same block of `pages` pages, a power of two, as the
    /// first.
    #[inline]
    pub(crate) fn split_off_block(&mut self, pages: usize) -> Self {
        let start = (self.page() & (pages - 1)) * PAGE_SIZE + self.offset();
        self.split_off(pages * PAGE_SIZE - start)
    }

    /// Returns the number of the first page of the block of `pages` pages, a power of two, that has
    /// the first byte.
    #[inline]
    pub(crate) fn block(self, pages: usize) -> usize {
        self.page() & !(pages - 1)
    }

    /// Skips the bytes before a page, which is not before the first byte nor beyond the last.
    #[inline]
    pub(crate) fn skip_to(&mut self, page: usize) {
        let start = (page as u64) << PAGE_SHIFT;
        self.split_off(start.saturating_sub(self.at) as usize);
    }

    /// Iterates over the parts of the range, one for each page.
    #[inline]
    pub(crate) fn parts(mut self) -> impl Iterator<Item = ByteRange> {
        iter::from_fn(move || (!self.is_empty()).then(|| self.split_off_page()))
    }
}
