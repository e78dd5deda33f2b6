// SPDX-License-Identifier: GPL-2.0

//! Positions on a disk in units of 512 bytes.
//!
//! A [`Sector`] is a position, a [`Sectors`] is a length. Only meaningful operations are defined: a
//! position plus a length is a position, and the difference of two positions is a length.
//! Arithmetic saturates, so it never panics or wraps.
//!
//! This file depends only on `core`.

use core::ops::{
    Add,
    AddAssign,
    Sub, //
};

/// The binary logarithm of [`SECTOR_SIZE`].
pub const SECTOR_SHIFT: u32 = 9;

/// The size of a sector in bytes, the same for all disks.
pub const SECTOR_SIZE: u32 = 1 << SECTOR_SHIFT;

/// A position on a disk: the number of sectors before it.
///
/// # Examples
///
/// ```
/// use kernel::block::{Sector, Sectors};
///
/// let end = Sector(8) + Sectors(4);
/// assert_eq!(end, Sector(12));
/// assert_eq!(end - Sector(8), Sectors(4));
/// assert_eq!(end.bytes(), 6144);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Sector(pub u64);

impl Sector {
    /// Returns the offset from the start of the disk in bytes, or `u64::MAX` if it does not fit.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.0.saturating_mul(SECTOR_SIZE as u64)
    }
}

impl Add<Sectors> for Sector {
    type Output = Sector;

    #[inline]
    fn add(self, length: Sectors) -> Sector {
        Sector(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Sectors> for Sector {
    #[inline]
    fn add_assign(&mut self, length: Sectors) {
        *self = *self + length;
    }
}

/// Returns the length from an earlier position to a later one, or zero if the order is reversed.
impl Sub for Sector {
    type Output = Sectors;

    #[inline]
    fn sub(self, start: Sector) -> Sectors {
        Sectors(self.0.saturating_sub(start.0))
    }
}

/// A length on a disk: a number of sectors.
///
/// # Examples
///
/// ```
/// use kernel::block::Sectors;
///
/// assert_eq!(Sectors::from_bytes(4096), Sectors(8));
/// assert_eq!(Sectors::from_mebibytes(1).bytes(), 1 << 20);
/// // A partial sector does not count.
/// assert_eq!(Sectors::from_bytes(1023), Sectors(1));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Sectors(pub u64);

impl Sectors {
    /// A length of zero.
    pub const ZERO: Self = Self(0);

    /// Returns the number of whole sectors in `bytes`.
    #[inline]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes >> SECTOR_SHIFT)
    }

    /// Returns the number of sectors in `mebibytes` units of 1048576 bytes, or `u64::MAX` if it
    /// does not fit.
    #[inline]
    pub const fn from_mebibytes(mebibytes: u64) -> Self {
        Self(mebibytes.saturating_mul(1 << (20 - SECTOR_SHIFT)))
    }

    /// Returns the length in bytes, or `u64::MAX` if it does not fit.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.0.saturating_mul(SECTOR_SIZE as u64)
    }

    /// Returns the number of sectors as C's limits count it, or `u32::MAX` if it does not fit.
    #[inline]
    pub const fn to_u32(self) -> u32 {
        if self.0 > u32::MAX as u64 {
            u32::MAX
        } else {
            self.0 as u32
        }
    }
}

impl Add for Sectors {
    type Output = Sectors;

    #[inline]
    fn add(self, other: Sectors) -> Sectors {
        Sectors(self.0.saturating_add(other.0))
    }
}

/// Returns the difference of two lengths, or zero if the second is longer.
impl Sub for Sectors {
    type Output = Sectors;

    #[inline]
    fn sub(self, other: Sectors) -> Sectors {
        Sectors(self.0.saturating_sub(other.0))
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_sector)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate() {
        assert_eq!(Sector(u64::MAX) + Sectors(1), Sector(u64::MAX));
        assert_eq!(Sector(1) - Sector(2), Sectors::ZERO);
        assert_eq!(Sectors(u64::MAX) + Sectors(1), Sectors(u64::MAX));
        assert_eq!(Sectors(1) - Sectors(2), Sectors::ZERO);
    }

    #[test]
    fn bytes_saturate() {
        assert_eq!(Sector(1 << 54).bytes(), 1 << 63);
        assert_eq!(Sector(1 << 55).bytes(), u64::MAX);
        assert_eq!(Sectors::from_mebibytes(u64::MAX), Sectors(u64::MAX));
        assert_eq!(Sectors(1 << 32).to_u32(), u32::MAX);
        assert_eq!(Sectors(u64::from(u32::MAX)).to_u32(), u32::MAX);
    }

    #[test]
    fn positions_advance() {
        let mut at = Sector(7);
        at += Sectors::from_bytes(1024);
        assert_eq!(at, Sector(9));
    }
}
