// SPDX-License-Identifier: GPL-2.0

//! Queue limits, which describe the capabilities of a disk.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    block::{
        Sectors,
        SECTOR_SHIFT, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

// `rust/helpers/blk.c` asserts that these are the bits of `blk_features_t`.
const FEATURE_WRITE_CACHE: u32 = 1 << 0;
const FEATURE_FUA: u32 = 1 << 1;
const FEATURE_ROTATIONAL: u32 = 1 << 2;
const FEATURE_IO_STAT: u32 = 1 << 4;
const FEATURE_STABLE_WRITES: u32 = 1 << 5;
const FEATURE_NOWAIT: u32 = 1 << 7;
const FEATURE_ZONED: u32 = 1 << 10;
const FEATURE_ATOMIC_WRITES: u32 = 1 << 14;

/// The features that [`QueueLimits`] describe.
const FEATURES: u32 = FEATURE_WRITE_CACHE
    | FEATURE_FUA
    | FEATURE_ROTATIONAL
    | FEATURE_STABLE_WRITES
    | FEATURE_ATOMIC_WRITES
    | FEATURE_ZONED;

/// Returns whether a disk with these features has FUA.
#[inline]
pub(crate) fn has_fua(features: bindings::blk_features_t) -> bool {
    features & FEATURE_FUA != 0
}

/// Returns whether a disk with these features has I/O statistics.
#[inline]
pub(crate) fn has_io_stat(features: bindings::blk_features_t) -> bool {
    features & FEATURE_IO_STAT != 0
}

/// The limits of a disk: the fields of C's `struct queue_limits` that drivers have needed so far.
///
/// Zero leaves the choice to the block layer. Limits that contradict each other make building the
/// disk fail with `EINVAL`.
///
/// # Examples
///
/// ```
/// use kernel::block::{limits::QueueLimits, Sectors};
///
/// let limits = QueueLimits {
///     logical_block_size: 4096,
///     max_hw_sectors: Sectors::from_bytes(1 << 20),
///     write_cache: true,
///     ..QueueLimits::default()
/// };
/// assert!(!limits.rotational);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QueueLimits {
    /// The smallest addressable unit in bytes: a power of two from 512 to 65536. More than a page
    /// needs transparent huge pages in the kernel. Zero means 512.
    pub logical_block_size: u32,
    /// The smallest unit in bytes that the disk writes without read-modify-write: a power of two.
    /// Raised to the logical block size.
    pub physical_block_size: u32,
    /// The preferred minimum I/O size in bytes. Raised to the physical block size.
    pub io_min: u32,
    /// The optimal I/O size in bytes, if there is one.
    pub io_opt: u32,
    /// The longest request. Zero means 255 sectors; less than a page or a logical block is
    /// rejected.
    pub max_hw_sectors: Sectors,
    /// A request does not cross a multiple of this length. With [`Self::zoned`], it is the zone
    /// size.
    pub chunk_sectors: Sectors,
    /// The maximum number of segments in a request. Zero means 128.
    pub max_segments: u16,
    /// The longest segment in bytes. Zero means 65536; less than 4096 is rejected, unless
    /// [`Self::virt_boundary_mask`] is set.
    pub max_segment_size: u32,
    /// Segments of a request begin and end at addresses with none of these bits set, except the
    /// start of the first segment and the end of the last. Zero means no restriction.
    pub virt_boundary_mask: usize,
    /// The bits that must be clear in the address and length in bytes of a segment. If it is less
    /// than 511, a segment may begin or end inside a sector; more than a page is rejected.
    pub dma_alignment: u32,
    /// The longest discard. Zero means that the disk does not support discard.
    pub max_hw_discard_sectors: Sectors,
    /// The granularity of discard in bytes.
    pub discard_granularity: u32,
    /// The maximum number of ranges in a discard. Zero means 1. If it is larger, the sectors of a
    /// discard need not follow one another: the driver gets them from
    /// [`discard_ranges`](crate::block::mq::IdleRequest::discard_ranges).
    pub max_discard_segments: u16,
    /// The longest Write Zeroes request. Zero means that the disk does not support it.
    pub max_write_zeroes_sectors: Sectors,
    /// The longest atomic write in bytes: a power failure leaves all of it on the disk, or nothing.
    /// Zero means that the disk has no atomic writes; then the three limits below are zero, too.
    ///
    /// With atomic writes [`Self::max_hw_sectors`] is less than 4 GiB, and
    /// [`Self::chunk_sectors`] is zero or not less than this.
    pub atomic_write_hw_max: u32,
    /// The shortest atomic write of a user in bytes: a power of two, at least the logical block
    /// size.
    pub atomic_write_hw_unit_min: u32,
    /// The longest atomic write of a user in bytes: a power of two, at most
    /// [`Self::atomic_write_hw_max`]. Several that follow one another may become one request, which
    /// that limits.
    pub atomic_write_hw_unit_max: u32,
    /// An atomic write does not cross a multiple of this length in bytes: a power of two, at least
    /// [`Self::atomic_write_hw_max`], of which [`Self::chunk_sectors`] is a multiple. Zero means
    /// that there is no such boundary.
    pub atomic_write_hw_boundary: u32,
    /// The disk has a volatile write cache: data that is not flushed is lost on power failure.
    pub write_cache: bool,
    /// A single write can bypass the cache (FUA); used only with [`Self::write_cache`].
    pub fua: bool,
    /// The disk is a rotational medium.
    pub rotational: bool,
    /// The memory of a write must not change before it has ended, for example because the driver
    /// checksums it.
    pub stable_writes: bool,
    /// The disk is zoned. This needs `CONFIG_BLK_DEV_ZONED`, and a driver with
    /// [`report_zones`](crate::block::mq::Operations::report_zones). The zone size,
    /// [`Self::chunk_sectors`], is a power of two of at most 2^31 sectors, and a multiple of the
    /// logical block size. The disk has at least one zone, and at most [`max_zones`].
    pub zoned: bool,
    /// The maximum number of open zones. Zero means no limit, and is required without zones. More
    /// than [`Self::max_active_zones`] is rejected, unless that is zero. For more than 2048 open or
    /// active zones, the kernel logs that only so many workers submit writes.
    pub max_open_zones: u32,
    /// The maximum number of active zones. Zero means no limit, and is required without zones.
    pub max_active_zones: u32,
    /// The longest zone append. Zero means that the block layer emulates zone append by writes, and
    /// is required without zones. More than a zone or the longest request has no effect. Less than
    /// a logical block is rejected.
    pub max_hw_zone_append_sectors: Sectors,
}

/// Returns the maximum number of zones of a disk; zero without `CONFIG_BLK_DEV_ZONED`.
///
/// # Examples
///
/// ```
/// use kernel::block::limits;
///
/// // 256 GiB in zones of 1 MiB.
/// assert!(limits::max_zones() >= 256 << 10 || !cfg!(CONFIG_BLK_DEV_ZONED));
/// ```
pub fn max_zones() -> u32 {
    // SAFETY: The function has no requirements.
    unsafe { bindings::blk_max_zones() }
}

/// Returns the largest limit on zones for which C can allocate memory.
fn max_limited_zones() -> u32 {
    // SAFETY: The function has no requirements.
    unsafe { bindings::blk_max_limited_zones() }
}

/// The largest zone size: the block layer has 32 bits for it, and wants a power of two.
const MAX_ZONE_SIZE: u64 = 1 << 31;

/// The smallest valid maximum segment size in bytes: C's `BLK_MIN_SEGMENT_SIZE`.
const MIN_SEGMENT_SIZE: u32 = 4096;

impl QueueLimits {
    /// Rejects with `EINVAL` what C would warn about. C rejects the rest without a warning.
    pub(crate) fn validate(&self) -> Result {
        let block = self.logical_block_size.max(1 << SECTOR_SHIFT);
        let least = Sectors::from_bytes(u64::from(block).max(PAGE_SIZE as u64));
        let lengths = self.max_hw_sectors == Sectors::ZERO || self.max_hw_sectors >= least;
        let segments = self.virt_boundary_mask != 0
            || self.max_segment_size == 0
            || self.max_segment_size >= MIN_SEGMENT_SIZE;
        let alignment = self.dma_alignment as usize <= PAGE_SIZE;
        let no_zones = self.max_open_zones == 0
            && self.max_active_zones == 0
            && self.max_hw_zone_append_sectors == Sectors::ZERO;
        let atomic_writes = self.has_valid_atomic_writes();
        if lengths && segments && alignment && (self.zoned || no_zones) && atomic_writes {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Returns whether the limits of atomic writes fit each other. C warns if they do not, or
    /// ignores them.
    fn has_valid_atomic_writes(&self) -> bool {
        let most = self.atomic_write_hw_max;
        let units = (self.atomic_write_hw_unit_min, self.atomic_write_hw_unit_max);
        let boundary = self.atomic_write_hw_boundary;
        if most == 0 {
            return units == (0, 0) && boundary == 0;
        }
        let chunk = Sectors(self.chunk_sectors.to_u32().into()).bytes();
        let divides = |a: u64, b: u64| a == 0 || b % a == 0;
        units.0.is_power_of_two()
            && units.1.is_power_of_two()
            && units.0 >= self.logical_block_size.max(1 << SECTOR_SHIFT)
            && units.0 <= units.1
            && units.1 <= most
            // This stands for limits that are not set yet.
            && most < u32::MAX
            && (chunk == 0 || u64::from(most) <= chunk)
            && (boundary == 0 || boundary.is_power_of_two() && boundary >= most)
            // C does not look at the chunks where there are boundaries.
            && divides(boundary.into(), chunk)
            // C counts the bytes of the longest request in 32 bits.
            && self.max_hw_sectors.bytes() <= u64::from(u32::MAX)
    }

    /// Rejects a zoned disk that C would warn about, or could not handle. Returns the limits for C,
    /// which allocates memory for as many zones as may be open, even if there are fewer.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the limits contradict each other, if the disk has no zones or too many, or if
    /// the kernel does not support zones. `ENOMEM` if more zones may be open or active than C can
    /// allocate memory for.
    pub(crate) fn validate_zones(mut self, capacity: Sectors) -> Result<Self> {
        let size = self.chunk_sectors.0;
        let block = u64::from(self.logical_block_size >> SECTOR_SHIFT).max(1);
        let sizes = size.is_power_of_two() && size <= MAX_ZONE_SIZE && size >= block;
        let limits = self.max_active_zones == 0 || self.max_open_zones <= self.max_active_zones;
        // An append has whole blocks. C would fail each one.
        let append = self.max_hw_zone_append_sectors.0;
        if !sizes || !limits || (1..block).contains(&append) {
            return Err(EINVAL);
        }
        let count = u32::try_from(capacity.0.div_ceil(size)).map_err(|_| EINVAL)?;
        if !(1..=max_zones()).contains(&count) {
            return Err(EINVAL);
        }
        self.max_open_zones = self.max_open_zones.min(count);
        self.max_active_zones = self.max_active_zones.min(count);
        if self.max_open_zones.max(self.max_active_zones) > max_limited_zones() {
            return Err(ENOMEM);
        }
        Ok(self)
    }

    /// Returns the limits as C's structure.
    pub(crate) fn as_raw(&self) -> bindings::queue_limits {
        bindings::queue_limits {
            features: self.features(),
            logical_block_size: self.logical_block_size,
            physical_block_size: self.physical_block_size,
            io_min: self.io_min,
            io_opt: self.io_opt,
            max_hw_sectors: self.max_hw_sectors.to_u32(),
            chunk_sectors: self.chunk_sectors.to_u32(),
            max_segments: self.max_segments,
            max_segment_size: self.max_segment_size,
            virt_boundary_mask: self.virt_boundary_mask as c_ulong,
            dma_alignment: self.dma_alignment,
            max_hw_discard_sectors: self.max_hw_discard_sectors.to_u32(),
            discard_granularity: self.discard_granularity,
            max_discard_segments: self.max_discard_segments,
            max_write_zeroes_sectors: self.max_write_zeroes_sectors.to_u32(),
            atomic_write_hw_max: self.atomic_write_hw_max,
            atomic_write_hw_unit_min: self.atomic_write_hw_unit_min,
            atomic_write_hw_unit_max: self.atomic_write_hw_unit_max,
            atomic_write_hw_boundary: self.atomic_write_hw_boundary,
            max_open_zones: self.max_open_zones,
            max_active_zones: self.max_active_zones,
            max_hw_zone_append_sectors: self.max_hw_zone_append_sectors.to_u32(),
            ..pin_init::zeroed()
        }
    }

    /// Returns the limits `raw` of a disk, which C has completed.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the disk is zoned.
    pub(crate) fn from_raw(raw: &bindings::queue_limits) -> Result<Self> {
        Ok(Self {
            chunk_sectors: Sectors(raw.chunk_sectors.into()),
            max_hw_discard_sectors: Sectors(raw.max_hw_discard_sectors.into()),
            max_discard_segments: raw.max_discard_segments,
            atomic_write_hw_max: raw.atomic_write_hw_max,
            atomic_write_hw_unit_min: raw.atomic_write_hw_unit_min,
            atomic_write_hw_unit_max: raw.atomic_write_hw_unit_max,
            atomic_write_hw_boundary: raw.atomic_write_hw_boundary,
            ..Self::stacked_on(raw)?
        })
    }

    /// Returns the limits as C's structure for a disk that has the limits `raw`: what users have
    /// chosen remains, and what C has set for the kind of disk.
    pub(crate) fn as_raw_instead_of(&self, raw: &bindings::queue_limits) -> bindings::queue_limits {
        bindings::queue_limits {
            features: self.features() | raw.features & !FEATURES,
            flags: raw.flags,
            max_user_sectors: raw.max_user_sectors,
            max_user_discard_sectors: raw.max_user_discard_sectors,
            max_user_wzeroes_unmap_sectors: raw.max_user_wzeroes_unmap_sectors,
            ..self.as_raw()
        }
    }

    /// Returns the limits of a disk that passes its I/O to another one, which has the limits `raw`
    /// and no zones.
    pub(crate) fn stacked_on(raw: &bindings::queue_limits) -> Result<Self> {
        let has = |feature| raw.features & feature != 0;
        if has(FEATURE_ZONED) {
            return Err(EOPNOTSUPP);
        }
        let sectors = |count: c_uint| Sectors(u64::from(count));
        Ok(Self {
            logical_block_size: raw.logical_block_size,
            physical_block_size: raw.physical_block_size,
            io_min: raw.io_min,
            io_opt: raw.io_opt,
            max_hw_sectors: sectors(raw.max_hw_sectors),
            max_segments: raw.max_segments,
            max_segment_size: raw.max_segment_size,
            virt_boundary_mask: raw.virt_boundary_mask,
            dma_alignment: raw.dma_alignment,
            max_hw_discard_sectors: sectors(raw.max_discard_sectors),
            discard_granularity: raw.discard_granularity,
            max_write_zeroes_sectors: sectors(raw.max_write_zeroes_sectors),
            write_cache: has(FEATURE_WRITE_CACHE),
            fua: has(FEATURE_FUA),
            rotational: has(FEATURE_ROTATIONAL),
            stable_writes: has(FEATURE_STABLE_WRITES),
            ..Self::default()
        })
    }

    /// Returns the limits of a disk that gets bios, with the features that C sets itself if the
    /// disk gets requests: I/O statistics, and bios that must not wait.
    pub(crate) fn as_raw_for_bios(&self) -> bindings::queue_limits {
        let mut raw = self.as_raw();
        raw.features |= FEATURE_IO_STAT | FEATURE_NOWAIT;
        raw
    }

    fn features(&self) -> bindings::blk_features_t {
        let bit = |set: bool, feature: u32| if set { feature } else { 0 };
        bit(self.write_cache, FEATURE_WRITE_CACHE)
            | bit(self.write_cache && self.fua, FEATURE_FUA)
            | bit(self.rotational, FEATURE_ROTATIONAL)
            | bit(self.stable_writes, FEATURE_STABLE_WRITES)
            | bit(self.zoned, FEATURE_ZONED)
            | bit(self.atomic_write_hw_max != 0, FEATURE_ATOMIC_WRITES)
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_limits)]
mod tests {
    use super::*;

    #[test]
    fn default_limits_are_all_zero() {
        let raw = QueueLimits::default().as_raw();
        assert_eq!(raw.features, 0);
        assert_eq!(raw.logical_block_size, 0);
        assert_eq!(raw.max_hw_sectors, 0);
    }

    #[test]
    fn a_disk_with_bios_has_the_features_that_c_sets_for_requests() {
        let raw = QueueLimits::default().as_raw_for_bios();
        assert_eq!(raw.features, FEATURE_IO_STAT | FEATURE_NOWAIT);
        assert!(has_io_stat(raw.features) && !has_fua(raw.features));
        assert!(has_fua(FEATURE_FUA) && !has_io_stat(FEATURE_FUA));
    }

    #[test]
    fn a_disk_on_top_has_the_limits_of_the_other() {
        let limits = QueueLimits {
            logical_block_size: 4096,
            max_hw_sectors: Sectors(2048),
            dma_alignment: 3,
            write_cache: true,
            stable_writes: true,
            ..QueueLimits::default()
        };
        assert_eq!(QueueLimits::stacked_on(&limits.as_raw()), Ok(limits));
        let zoned = QueueLimits {
            zoned: true,
            ..limits
        };
        assert_eq!(QueueLimits::stacked_on(&zoned.as_raw()), Err(EOPNOTSUPP));
    }

    #[test]
    fn fua_needs_a_write_cache() {
        let mut limits = QueueLimits {
            fua: true,
            ..QueueLimits::default()
        };
        assert_eq!(limits.as_raw().features, 0);
        limits.write_cache = true;
        assert_eq!(limits.as_raw().features, FEATURE_WRITE_CACHE | FEATURE_FUA);
    }

    #[test]
    fn bounds_are_those_of_c() {
        let none = QueueLimits::default();
        let page = Sectors::from_bytes(PAGE_SIZE as u64);
        let large = QueueLimits {
            logical_block_size: 65536,
            ..none
        };
        let with = |max_hw_sectors, limits| QueueLimits {
            max_hw_sectors,
            ..limits
        };
        let boundary = QueueLimits {
            virt_boundary_mask: PAGE_SIZE - 1,
            ..none
        };
        let segment = |max_segment_size, limits| QueueLimits {
            max_segment_size,
            ..limits
        };
        let alignment = |dma_alignment| QueueLimits {
            dma_alignment,
            ..none
        };
        for (limits, valid) in [
            (none, true),
            (large, true),
            (with(page, none), true),
            (with(Sectors(page.0 - 1), none), false),
            (with(Sectors(128), large), true),
            (with(Sectors(127), large), false),
            (segment(4096, none), true),
            (segment(4095, none), false),
            (segment(4095, boundary), true),
            (alignment(PAGE_SIZE as u32), true),
            (alignment(PAGE_SIZE as u32 + 1), false),
        ] {
            assert_eq!(limits.validate().is_ok(), valid);
        }
    }

    #[test]
    fn zones_are_checked() {
        let zoned = QueueLimits {
            zoned: true,
            chunk_sectors: Sectors(64),
            logical_block_size: 4096,
            max_open_zones: 5,
            max_active_zones: 100,
            ..QueueLimits::default()
        };
        let size = |size| QueueLimits {
            chunk_sectors: Sectors(size),
            ..zoned
        };
        let open = |max_open_zones| QueueLimits {
            max_open_zones,
            ..zoned
        };
        let append = |sectors| QueueLimits {
            max_hw_zone_append_sectors: Sectors(sectors),
            ..zoned
        };
        let most = u64::from(max_zones());
        for (limits, capacity, valid) in [
            (zoned, 1, true),
            (zoned, 0, false),
            (zoned, 64 * most, true),
            (zoned, 64 * most + 1, false),
            (zoned, u64::MAX, false),
            (size(8), 64, true),
            (size(4), 64, false),
            (size(0), 64, false),
            (size(96), 960, false),
            (size(1 << 31), 1 << 35, true),
            (size(1 << 32), 1 << 35, false),
            (open(100), 64, true),
            (open(101), 64, false),
            (append(8), 64, true),
            (append(7), 64, false),
        ] {
            let valid = valid && cfg!(CONFIG_BLK_DEV_ZONED);
            assert_eq!(limits.validate_zones(Sectors(capacity)).is_ok(), valid);
        }
        for (max_open_zones, valid) in [
            (max_limited_zones(), true),
            (max_limited_zones() + 1, false),
        ] {
            let limits = QueueLimits {
                max_open_zones,
                max_active_zones: 0,
                ..zoned
            };
            let zones = u64::from(max_limited_zones()) + 1;
            let valid = valid && cfg!(CONFIG_BLK_DEV_ZONED);
            assert_eq!(limits.validate_zones(Sectors(64 * zones)).is_ok(), valid);
        }
        if let Ok(limits) = zoned.validate_zones(Sectors(640)) {
            assert_eq!((limits.max_open_zones, limits.max_active_zones), (5, 10));
        }
    }

    #[test]
    fn limits_on_zones_need_zones() {
        let append = QueueLimits {
            max_hw_zone_append_sectors: Sectors(8),
            ..QueueLimits::default()
        };
        assert_eq!(append.validate(), Err(EINVAL));
        let zoned = QueueLimits {
            zoned: true,
            ..append
        };
        assert_eq!(zoned.validate(), Ok(()));
    }

    #[test]
    fn atomic_writes_are_checked() {
        let atomic = QueueLimits {
            logical_block_size: 512,
            atomic_write_hw_max: 24 << 10,
            atomic_write_hw_unit_min: 512,
            atomic_write_hw_unit_max: 16 << 10,
            atomic_write_hw_boundary: 64 << 10,
            ..QueueLimits::default()
        };
        assert_eq!(atomic.as_raw().features, FEATURE_ATOMIC_WRITES);
        let with = |change: fn(&mut QueueLimits)| {
            let mut limits = atomic;
            change(&mut limits);
            limits.validate()
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|limits| limits.atomic_write_hw_boundary = 0), Ok(()));
        for change in [
            (|limits| limits.atomic_write_hw_max = 0) as fn(&mut QueueLimits),
            |limits| limits.atomic_write_hw_max = (16 << 10) - 1,
            |limits| limits.atomic_write_hw_max = (64 << 10) + 1,
            |limits| limits.atomic_write_hw_unit_min = 0,
            |limits| limits.atomic_write_hw_unit_min = 256,
            |limits| limits.atomic_write_hw_unit_min = 1536,
            |limits| limits.atomic_write_hw_unit_min = 32 << 10,
            |limits| limits.atomic_write_hw_unit_max = 24 << 10,
            |limits| limits.atomic_write_hw_boundary = 48 << 10,
            |limits| limits.logical_block_size = 1024,
            |limits| limits.chunk_sectors = Sectors(47),
            |limits| limits.chunk_sectors = Sectors(64),
            |limits| limits.chunk_sectors = Sectors(192),
            |limits| limits.chunk_sectors = Sectors(1 << 32),
            |limits| {
                limits.atomic_write_hw_boundary = 0;
                limits.atomic_write_hw_max = u32::MAX;
            },
            |limits| limits.max_hw_sectors = Sectors(1 << 23),
        ] {
            assert_eq!(with(change), Err(EINVAL));
        }
        for chunk in [128, 256] {
            let limits = QueueLimits {
                chunk_sectors: Sectors(chunk),
                ..atomic
            };
            assert_eq!(limits.validate(), Ok(()));
        }
    }

    #[test]
    fn lengths_saturate() {
        let limits = QueueLimits {
            max_hw_sectors: Sectors(u64::MAX),
            ..QueueLimits::default()
        };
        assert_eq!(limits.as_raw().max_hw_sectors, u32::MAX);
    }
}
