// SPDX-License-Identifier: GPL-2.0

//! The division of a range of bytes into units of exclusion.

use crate::{
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
};

/// How many bytes are copied to their end before anybody else may touch one of them.
///
/// # Invariants
///
/// `mask + 1` is a power of two, and not less than `PAGE_SIZE`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    mask: u32,
}

impl Unit {
    /// The largest unit: no block device has larger blocks, but an architecture may have as large
    /// pages.
    const MAX: u32 = if PAGE_SIZE > 65536 {
        PAGE_SIZE as u32
    } else {
        65536
    };

    /// The unit for blocks of this size, which is rounded up to a power of two from a page to 64
    /// KiB.
    pub(super) fn for_blocks(bytes: u32) -> Self {
        let bytes = bytes.clamp(PAGE_SIZE as u32, Self::MAX).next_power_of_two();
        // INVARIANT: Both bounds are powers of two, the lower one is a page.
        Self { mask: bytes - 1 }
    }

    /// The unit with this mask, which [`Self::mask`] returned.
    #[inline]
    pub(super) fn from_mask(mask: u32) -> Self {
        // INVARIANT: It is the mask of a unit.
        Self { mask }
    }

    /// The number of bytes less one: the bits of a byte's number that count within the unit.
    #[inline]
    pub(super) fn mask(self) -> u32 {
        self.mask
    }

    /// The number of pages, which is a power of two.
    #[inline]
    pub(super) fn pages(self) -> usize {
        (self.mask as usize >> PAGE_SHIFT) + 1
    }

    /// The first page of the unit that page `index` is in.
    #[inline]
    pub(super) fn first(self, index: usize) -> usize {
        index & !(self.mask as usize >> PAGE_SHIFT)
    }

    /// Divides the bytes from `at` to `at + len`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the range goes beyond the pages that can be numbered.
    #[inline]
    pub(super) fn spans(self, at: u64, len: usize) -> Result<Spans> {
        let end = at.checked_add(len as u64).ok_or(EINVAL)?;
        // On 64-bit machines that is always so.
        usize::try_from(end >> PAGE_SHIFT).map_err(|_| EINVAL)?;
        Ok(Spans {
            unit: self,
            at,
            left: len,
        })
    }
}

/// The parts of a range, one for each unit that it touches.
pub(super) struct Spans {
    unit: Unit,
    at: u64,
    left: usize,
}

impl Iterator for Spans {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        if self.left == 0 {
            return None;
        }
        let mask = self.unit.mask as usize;
        let len = self.left.min(mask - (self.at as usize & mask) + 1);
        let page = (self.at >> PAGE_SHIFT) as usize;
        let span = Span {
            first: self.unit.first(page),
            page,
            offset: self.at as usize & (PAGE_SIZE - 1),
            len,
        };
        // The end of the whole range is known to be a number.
        self.at = self.at.wrapping_add(len as u64);
        self.left -= len;
        Some(span)
    }
}

/// A range of bytes within one unit.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// The first page of the unit, which need not be part of the range.
    pub(super) first: usize,
    page: usize,
    offset: usize,
    len: usize,
}

impl Span {
    /// The number of bytes, at least one.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether the unit is the first of 64 pages, which is where a node of the XArray begins.
    #[inline]
    pub(super) fn begins_node(&self) -> bool {
        self.first % 64 == 0
    }

    /// The parts of the range, one for each page.
    #[inline]
    pub(super) fn parts(&self) -> Parts {
        Parts {
            page: self.page,
            offset: self.offset,
            left: self.len,
        }
    }
}

/// The parts of a [`Span`], in order.
///
/// # Invariants
///
/// `offset < PAGE_SIZE`.
pub(super) struct Parts {
    page: usize,
    offset: usize,
    left: usize,
}

impl Iterator for Parts {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        if self.left == 0 {
            return None;
        }
        // INVARIANT: The part ends where its page does, if not before.
        let part = Part {
            page: self.page,
            offset: self.offset,
            len: self.left.min(PAGE_SIZE - self.offset),
        };
        self.page = self.page.wrapping_add(1);
        self.offset = 0;
        self.left -= part.len;
        Some(part)
    }
}

/// A range of bytes within one page.
///
/// # Invariants
///
/// `offset + len <= PAGE_SIZE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    page: usize,
    offset: usize,
    len: usize,
}

impl Part {
    /// The number of the page.
    #[inline]
    pub(super) fn page(&self) -> usize {
        self.page
    }

    /// Where in the page the range starts.
    #[inline]
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The number of bytes, at least one.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}
