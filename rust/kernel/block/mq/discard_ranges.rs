// SPDX-License-Identifier: GPL-2.0

//! The ranges of sectors of a discard.
//!
//! The block layer merges discards of ranges that do not follow one another, if the disk allows
//! more than one range: [`QueueLimits::max_discard_segments`]. It merges those that do in any case,
//! and does not count them then.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)
//!
//! [`QueueLimits::max_discard_segments`]: crate::block::limits::QueueLimits::max_discard_segments

use crate::{
    bindings,
    block::{
        Sector,
        Sectors, //
    },
};
use core::marker::PhantomData;

/// The ranges of sectors of a discard, each with its first sector and its length.
///
/// It is an [`Iterator`] that borrows from the request. No range begins where the one before ends,
/// so there are at most as many as the disk allows.
///
/// # Invariants
///
/// `bio` is null, or the first of a list of bios that do not change or end during `'a`.
pub struct DiscardRanges<'a> {
    bio: *const bindings::bio,
    _borrow: PhantomData<&'a ()>,
}

impl DiscardRanges<'_> {
    /// # Safety
    ///
    /// The type invariant holds.
    #[inline]
    pub(super) unsafe fn from_raw(bio: *const bindings::bio) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            bio,
            _borrow: PhantomData,
        }
    }

    /// Returns the range of the next bio, if there is one, and its first sector is `wanted`.
    #[inline]
    fn next_bio(&mut self, wanted: impl FnOnce(u64) -> bool) -> Option<(Sector, Sectors)> {
        if self.bio.is_null() {
            return None;
        }
        // SAFETY: By the type invariant.
        let iter = unsafe { (*self.bio).bi_iter };
        if !wanted(iter.bi_sector) {
            return None;
        }
        // INVARIANT: The rest of a list is a list.
        //
        // SAFETY: By the type invariant.
        self.bio = unsafe { (*self.bio).bi_next };
        let bytes = u64::from(iter.bi_size);
        Some((Sector(iter.bi_sector), Sectors::from_bytes(bytes)))
    }
}

impl Iterator for DiscardRanges<'_> {
    type Item = (Sector, Sectors);

    #[inline]
    fn next(&mut self) -> Option<(Sector, Sectors)> {
        let (first, mut len) = self.next_bio(|_| true)?;
        // C's number of segments does not count a bio that follows the one before.
        while let Some((_, more)) = self.next_bio(|sector| sector == first.0 + len.0) {
            len.0 += more.0;
        }
        Some((first, len))
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_discard_ranges)]
mod tests {
    use super::*;

    fn bio(sector: u64, bytes: u32) -> bindings::bio {
        // SAFETY: All zeros are a valid `struct bio`.
        let mut bio: bindings::bio = unsafe { core::mem::zeroed() };
        bio.bi_iter.bi_sector = sector;
        bio.bi_iter.bi_size = bytes;
        bio
    }

    #[test]
    fn no_bio_is_no_range() {
        // SAFETY: There is no bio.
        assert!(unsafe { DiscardRanges::from_raw(core::ptr::null()) }
            .next()
            .is_none());
    }

    #[test]
    fn bios_apart_are_ranges() {
        let last = bio(7, u32::MAX - 511);
        let mut first = bio(1 << 40, 512);
        first.bi_next = core::ptr::from_ref(&last).cast_mut();
        // SAFETY: The bios are not changed any more.
        let mut ranges = unsafe { DiscardRanges::from_raw(&first) };
        assert_eq!(ranges.next(), Some((Sector(1 << 40), Sectors(1))));
        assert_eq!(ranges.next(), Some((Sector(7), Sectors((1 << 23) - 1))));
        assert_eq!(ranges.next(), None);
    }
    #[test]
    fn bios_that_follow_one_another_are_one_range() {
        let apart = bio(20, 512);
        let mut third = bio(14, 1024);
        third.bi_next = core::ptr::from_ref(&apart).cast_mut();
        let mut second = bio(12, 1024);
        second.bi_next = core::ptr::from_ref(&third).cast_mut();
        let mut first = bio(10, 1024);
        first.bi_next = core::ptr::from_ref(&second).cast_mut();
        // SAFETY: The bios are not changed any more.
        let mut ranges = unsafe { DiscardRanges::from_raw(&first) };
        assert_eq!(ranges.next(), Some((Sector(10), Sectors(6))));
        assert_eq!(ranges.next(), Some((Sector(20), Sectors(1))));
        assert_eq!(ranges.next(), None);
    }
}
