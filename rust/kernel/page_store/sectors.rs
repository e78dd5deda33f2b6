// SPDX-License-Identifier: GPL-2.0

//! The set of those sectors of a page that hold data.

use crate::page::PAGE_SIZE;

/// The number of sectors of 512 bytes in a page.
const SECTORS: usize = PAGE_SIZE / 512;

/// How many bits there are: one for each sector if half a word has room for as many, else a quarter
/// of a word's.
const BITS: usize = if SECTORS <= usize::BITS as usize / 2 {
    SECTORS
} else {
    usize::BITS as usize / 4
};

/// The number of bytes that a bit stands for: 512, if pages have up to 16 KiB.
pub(super) const GRANULE: usize = PAGE_SIZE / BITS;

/// A set of sectors of one page.
///
/// # Invariants
///
/// No bit is set but the lower `BITS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sectors(usize);

impl Sectors {
    /// The number of bits that a set takes.
    pub(super) const WIDTH: u32 = BITS as u32;

    /// All sectors of the page.
    // INVARIANT: These are the lower `BITS` bits.
    pub(super) const ALL: Self = Self(!(!0 << BITS));

    /// The set with these bits; higher ones count for nothing.
    #[inline]
    pub(super) fn from_bits(bits: usize) -> Self {
        // INVARIANT: The others were just taken away.
        Self(bits & Self::ALL.0)
    }

    /// The bits of the set, one for each sector, beginning with the lowest.
    #[inline]
    pub(super) fn bits(self) -> usize {
        self.0
    }

    /// The sectors with a byte among the `len` bytes from `offset` on; these end within the page.
    #[inline]
    pub(super) fn touched(offset: usize, len: usize) -> Self {
        Self::between(offset / GRANULE, offset.wrapping_add(len).div_ceil(GRANULE))
    }

    /// The sectors that have no byte but the `len` bytes from `offset` on.
    #[inline]
    pub(super) fn within(offset: usize, len: usize) -> Self {
        Self::between(offset.div_ceil(GRANULE), offset.wrapping_add(len) / GRANULE)
    }

    /// The sectors from `first` to the one before `end`.
    #[inline]
    fn between(first: usize, end: usize) -> Self {
        let below = |sector: usize| !(!0 << sector.min(BITS));
        // INVARIANT: `below` sets none but the lower `BITS` bits.
        Self(below(end) & !below(first))
    }

    /// Where each of them is in the page: its first byte, and the number of bytes.
    pub(super) fn bytes(self) -> impl Iterator<Item = (usize, usize)> {
        (0..BITS)
            .filter(move |sector| self.0 >> sector & 1 != 0)
            .map(|sector| (sector * GRANULE, GRANULE))
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// No sector at all.
    // INVARIANT: No bit is set.
    pub(super) const NONE: Self = Self(0);

    /// Those that are in `other`, too.
    #[inline]
    pub(super) fn both(self, other: Self) -> Self {
        // INVARIANT: No bit is added.
        Self(self.0 & other.0)
    }

    /// With those of `other`.
    #[inline]
    pub(super) fn with(self, other: Self) -> Self {
        // INVARIANT: Neither has others.
        Self(self.0 | other.0)
    }

    /// Without those of `other`.
    #[inline]
    pub(super) fn without(self, other: Self) -> Self {
        // INVARIANT: No bit is added.
        Self(self.0 & !other.0)
    }
}
