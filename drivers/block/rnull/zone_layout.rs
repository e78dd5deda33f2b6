// SPDX-License-Identifier: GPL-2.0

//! The division of a disk into zones.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.
//!
//! All positions and lengths are in sectors of 512 bytes.

/// The largest zone size: the block layer has 32 bits for it, and wants a power of two.
pub(crate) const MAX_ZONE_SIZE: u64 = 1 << 31;

/// The division of a disk into zones of one size, of which the last may be smaller.
///
/// The first zones are conventional, the others have to be written sequentially.
///
/// # Invariants
///
/// The size is a power of two, at most [`MAX_ZONE_SIZE`], with `shift` as its logarithm. `capacity`
/// is from 1 to the size. There are `count` zones on the disk, at least one, of which the first
/// `conventional` are conventional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneLayout {
    /// The length of a zone, less one.
    mask: u64,
    shift: u32,
    /// How much can be written to a sequential zone.
    capacity: u64,
    /// The length of the disk.
    disk: u64,
    count: u32,
    conventional: u32,
}

/// A zone: where it is, and how much can be written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    /// The position of the first sector on the disk.
    pub(crate) start: u64,
    /// The number of sectors.
    pub(crate) len: u64,
    /// The number of sectors that can be written, from the first on.
    pub(crate) capacity: u64,
}

impl ZoneLayout {
    /// Divides a disk of `disk` sectors into zones of `size` sectors. `capacity` sectors can be
    /// written to a sequential zone, and to the last one no more than it has.
    ///
    /// Returns [`None`] if the size is no power of two or exceeds [`MAX_ZONE_SIZE`], if the
    /// capacity is zero or exceeds the size, or if there are no zones or more than `max_count`.
    pub(crate) fn new(disk: u64, size: u64, capacity: u64, max_count: u32) -> Option<Self> {
        let sizes = size.is_power_of_two() && size <= MAX_ZONE_SIZE;
        if !sizes || !(1..=size).contains(&capacity) {
            return None;
        }
        let count = u32::try_from(disk.div_ceil(size)).ok()?;
        // INVARIANT: The sizes were just checked, and the number of zones is.
        (1..=max_count).contains(&count).then_some(Self {
            mask: size - 1,
            shift: size.trailing_zeros(),
            capacity,
            disk,
            count,
            conventional: 0,
        })
    }

    /// Makes the first `conventional` zones conventional, but not the last zone of the disk.
    pub(crate) fn with_conventional(self, conventional: u32) -> Self {
        // INVARIANT: There is at least one zone.
        Self {
            conventional: conventional.min(self.count - 1),
            ..self
        }
    }

    /// Returns the length of all zones but the last.
    pub(crate) fn size(&self) -> u64 {
        self.mask.wrapping_add(1)
    }

    /// Returns how many sectors of a sequential zone can be written, unless it is a shorter last
    /// zone.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of zones.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of conventional zones, which are the first ones.
    pub(crate) fn conventional(&self) -> u32 {
        self.conventional
    }

    /// Returns the number of sequential zones, of which there is at least one.
    pub(crate) fn sequential(&self) -> u32 {
        self.count - self.conventional
    }

    /// Returns the number of the zone that has `sector`; [`None`] behind the last zone.
    #[inline]
    pub(crate) fn number(&self, sector: u64) -> Option<u32> {
        let number = sector.wrapping_shr(self.shift);
        (number < u64::from(self.count)).then_some(number as u32)
    }

    /// Returns which of the sequential zones has `sector`; [`None`] if a conventional one has.
    /// Behind the last zone there are no limits to the result.
    #[inline]
    pub(crate) fn sequential_index(&self, sector: u64) -> Option<usize> {
        let number = sector.wrapping_shr(self.shift);
        Some(number.checked_sub(u64::from(self.conventional))? as usize)
    }

    /// Returns the position of `sector` in its zone.
    #[inline]
    pub(crate) fn offset(&self, sector: u64) -> u64 {
        sector & self.mask
    }

    /// Returns the zone with this number; [`None`] if there is none.
    #[inline]
    pub(crate) fn zone(&self, number: u32) -> Option<Zone> {
        // Behind the last zone it may be any number.
        let start = u64::from(number).wrapping_shl(self.shift);
        if number >= self.count {
            return None;
        }
        let len = self.size().min(self.disk.saturating_sub(start));
        let capacity = if number < self.conventional {
            len
        } else {
            len.min(self.capacity)
        };
        Some(Zone {
            start,
            len,
            capacity,
        })
    }
}
