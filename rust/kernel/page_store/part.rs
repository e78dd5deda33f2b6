// SPDX-License-Identifier: GPL-2.0

//! A range of bytes that is within one page.

use super::sectors::{
    Sectors,
    GRANULE, //
};
use crate::page::{
    PAGE_SHIFT,
    PAGE_SIZE, //
};

/// The number of the page that byte `at` is in; whoever asks has seen to it that there is one.
#[inline]
pub(super) fn page_of(at: u64) -> usize {
    (at >> PAGE_SHIFT) as usize
}

/// Where in its page byte `at` is.
#[inline]
pub(super) fn offset_of(at: u64) -> usize {
    at as usize % PAGE_SIZE
}

/// A range of bytes within one page.
///
/// # Invariants
///
/// The `len` bytes from byte `at` on are in one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    at: u64,
    len: usize,
}

impl Part {
    /// The bytes from `at` on that are in the same page, but at most `len`.
    #[inline]
    pub(super) fn new(at: u64, len: usize) -> Self {
        // INVARIANT: It ends where the page does, if not before.
        Self {
            at,
            len: len.min(PAGE_SIZE - offset_of(at)),
        }
    }

    /// All of the page whose first byte is `at`.
    #[inline]
    pub(super) fn of_page(at: u64) -> Self {
        // INVARIANT: It is a page.
        Self { at, len: PAGE_SIZE }
    }

    /// The `len` bytes from `at` on; [`None`] if they are not all bytes of one page, or of one that
    /// cannot be numbered.
    #[inline]
    pub(super) fn whole(at: u64, len: u64) -> Option<Self> {
        // On 64-bit machines that is always so.
        usize::try_from(at >> PAGE_SHIFT).ok()?;
        (len == PAGE_SIZE as u64 && offset_of(at) == 0).then(|| Self::of_page(at))
    }

    /// The `len` bytes from `at` on; [`None`] if there are none, or they are in several pages, or
    /// in one that cannot be numbered.
    #[inline]
    pub(super) fn single(at: u64, len: usize) -> Option<Self> {
        // On 64-bit machines that is always so.
        usize::try_from(at >> PAGE_SHIFT).ok()?;
        let room = PAGE_SIZE - offset_of(at);
        // INVARIANT: It ends where the page does, if not before.
        (len.wrapping_sub(1) < room).then_some(Self { at, len })
    }

    /// The number of the page.
    #[inline]
    pub(super) fn page(&self) -> usize {
        page_of(self.at)
    }

    /// Where in the page the range starts.
    #[inline]
    pub(super) fn offset(&self) -> usize {
        offset_of(self.at)
    }

    /// The number of bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The sectors with a byte in the range.
    #[inline]
    pub(super) fn touched(&self) -> Sectors {
        if self.is_page() {
            return Sectors::ALL;
        }
        self.touched_in_page()
    }

    /// The same where it is not all of them. It is apart so that what copies pages stays small.
    #[inline(never)]
    fn touched_in_page(self) -> Sectors {
        Sectors::touched(self.offset(), self.len)
    }

    /// The sectors that have no byte elsewhere.
    #[inline]
    pub(super) fn covered(&self) -> Sectors {
        Sectors::within(self.offset(), self.len)
    }

    /// Whether the range is a page.
    #[inline]
    pub(super) fn is_page(&self) -> bool {
        self.len == PAGE_SIZE
    }

    /// Divides it: its first bytes, all in sectors of `set` or none of them, then the rest.
    pub(super) fn split_where(self, set: Sectors) -> (Self, Self) {
        let within = |part: &Self| part.touched().both(set) == part.touched();
        let without = |part: &Self| part.touched().both(set).is_empty();
        if within(&self) || without(&self) {
            return self.split(self.len);
        }
        // In between, sector by sector.
        self.split(GRANULE - self.offset() % GRANULE)
    }

    /// Divides it: its first bytes, `len` of them unless it is shorter, then the rest.
    #[inline]
    pub(super) fn split(self, len: usize) -> (Self, Self) {
        let len = len.min(self.len);
        // INVARIANT: The first ends where the second starts, which ends where `self` does.
        let first = Self { len, ..self };
        let rest = Self {
            at: self.at.wrapping_add(len as u64),
            len: self.len - len,
        };
        (first, rest)
    }
}
