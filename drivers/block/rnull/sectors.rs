// SPDX-License-Identifier: GPL-2.0

//! The set of those sectors of a page that hold data.

use kernel::page::PAGE_SIZE;

/// The number of bytes that a bit stands for: 512 in small pages.
pub(crate) const GRANULE: usize = granule(PAGE_SIZE);

/// How many bits there are.
const BITS: usize = PAGE_SIZE / GRANULE;

/// The number of bytes that a bit stands for in a page of so many: there is a bit for each sector
/// of 512 bytes if half a word has room for as many, else there are a quarter of a word's.
const fn granule(page_size: usize) -> usize {
    const WORD: usize = usize::BITS as usize;

    let sectors = page_size / 512;
    if sectors <= WORD / 2 {
        512
    } else {
        page_size / (WORD / 4)
    }
}

/// A set of sectors of one page.
///
/// # Invariants
///
/// No bit is set but the lower `BITS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sectors(usize);

impl Sectors {
    /// The number of bits that a set takes.
    pub(crate) const WIDTH: u32 = BITS as u32;

    /// All sectors of the page.
    // INVARIANT: These are the lower `BITS` bits.
    pub(crate) const ALL: Self = Self(!(!0 << BITS));

    /// The set with these bits; higher ones count for nothing.
    #[inline]
    pub(crate) fn from_bits(bits: usize) -> Self {
        // INVARIANT: The others were just taken away.
        Self(bits & Self::ALL.0)
    }

    /// The bits of the set, one for each sector, beginning with the lowest.
    #[inline]
    pub(crate) fn bits(self) -> usize {
        self.0
    }

    /// The sectors with a byte among the `len` bytes from `offset` on; these end within the page.
    #[inline]
    pub(crate) fn touched(offset: usize, len: usize) -> Self {
        Self::between(offset / GRANULE, offset.wrapping_add(len).div_ceil(GRANULE))
    }

    /// The sectors that have no byte but the `len` bytes from `offset` on.
    #[inline]
    pub(crate) fn within(offset: usize, len: usize) -> Self {
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
    pub(crate) fn bytes(self) -> impl Iterator<Item = (usize, usize)> {
        (0..BITS)
            .filter(move |sector| self.0 >> sector & 1 != 0)
            .map(|sector| (sector * GRANULE, GRANULE))
    }

    /// Returns how many of the `len` bytes from `offset` on are in sectors that are, as the first
    /// is, in the set or not; and which of these is the case.
    pub(crate) fn run(self, offset: usize, len: usize) -> (usize, bool) {
        let has = |sector: usize| self.0 >> sector & 1 != 0;
        let first = offset / GRANULE;
        let end = (first..BITS)
            .find(|sector| has(*sector) != has(first))
            .unwrap_or(BITS);
        (len.min(end * GRANULE - offset), has(first))
    }

    /// No sector at all.
    // INVARIANT: No bit is set.
    pub(crate) const NONE: Self = Self(0);

    /// With those of `other`.
    #[inline]
    pub(crate) fn with(self, other: Self) -> Self {
        // INVARIANT: Neither has others.
        Self(self.0 | other.0)
    }

    /// Without those of `other`.
    #[inline]
    pub(crate) fn without(self, other: Self) -> Self {
        // INVARIANT: No bit is added.
        Self(self.0 & !other.0)
    }
}
