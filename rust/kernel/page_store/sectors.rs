// SPDX-License-Identifier: GPL-2.0

//! The set of those sectors of a page that hold data.

use crate::page::PAGE_SIZE;

/// The number of bytes that a bit stands for: 512, if pages have up to 16 KiB.
pub(super) const GRANULE: usize = granule(PAGE_SIZE);

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

/// Whether no bit that stands for so many bytes stands for bytes of two blocks of `block_size`.
pub(super) const fn keeps_apart(granule: usize, block_size: u32) -> bool {
    block_size != 0 && block_size as usize % granule == 0
}

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

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_page_store_sectors)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_have_larger_sectors() {
        assert_eq!(granule(4096), 512);
        // As many as bits for it, in half a word.
        let most = 512 * usize::BITS as usize / 2;
        assert_eq!(granule(most), 512);
        assert_eq!(granule(2 * most), 2048);
        assert_eq!(granule(4 * most), 4096);
        assert_eq!(PAGE_SIZE % GRANULE, 0);
    }

    #[test]
    fn small_blocks_share_large_sectors() {
        for block_size in [512, 1024, 4096, 65536] {
            assert!(keeps_apart(512, block_size));
            assert_eq!(keeps_apart(4096, block_size), block_size >= 4096);
        }
        assert!(!keeps_apart(512, 0));
        assert!(!keeps_apart(4096, 6144));
    }
}
