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
/// `PAGE_SHIFT <= shift <= MAX_SHIFT`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    shift: u32,
}

impl Unit {
    /// Blocks of at most 64 KiB exist; pages may be as large.
    const MAX_SHIFT: u32 = if PAGE_SHIFT > 16 {
        PAGE_SHIFT as u32
    } else {
        16
    };

    /// The unit for blocks of this size, which is rounded up to a power of two from a page to 64
    /// KiB.
    pub(super) fn for_blocks(bytes: u32) -> Self {
        let shift = bytes
            .clamp(PAGE_SIZE as u32, 1 << Self::MAX_SHIFT)
            .next_power_of_two()
            .ilog2();
        // INVARIANT: Both bounds are powers of two, and the size was brought between them.
        Self { shift }
    }

    /// The unit with this logarithm, which [`Self::shift`] returned.
    #[inline]
    pub(super) fn from_shift(shift: u32) -> Self {
        Self { shift }
    }

    /// The logarithm of the number of bytes.
    #[inline]
    pub(super) fn shift(self) -> u32 {
        self.shift
    }

    /// The number of bytes, which is a power of two.
    #[inline]
    pub(super) fn bytes(self) -> u32 {
        1 << self.shift
    }

    /// The number of pages, which is a power of two.
    #[inline]
    pub(super) fn pages(self) -> usize {
        1 << (self.shift as usize - PAGE_SHIFT)
    }

    /// The first page of the unit that page `index` is in.
    #[inline]
    pub(super) fn first(self, index: usize) -> usize {
        index & !(self.pages() - 1)
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
        let bytes = self.unit.bytes() as usize;
        let len = self.left.min(bytes - (self.at as usize & (bytes - 1)));
        let page = (self.at >> PAGE_SHIFT) as usize;
        let span = Span {
            first: self.unit.first(page),
            page,
            offset: self.at as usize & (PAGE_SIZE - 1),
            len,
        };
        self.at += len as u64;
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
        self.page += 1;
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
