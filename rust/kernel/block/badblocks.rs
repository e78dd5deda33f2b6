// SPDX-License-Identifier: GPL-2.0

//! The bad blocks of a disk.
//!
//! C header: [`include/linux/badblocks.h`](srctree/include/linux/badblocks.h)

use super::{
    Sector,
    Sectors, //
};
use crate::{
    bindings,
    error::to_result,
    prelude::*, //
};
use core::{
    iter,
    ops::Range,
    ptr::NonNull, //
};

/// The table of the bad blocks of a disk: C's `struct badblocks`.
///
/// It has room for [`BadBlocks::CAPACITY`] entries, each of up to 512 contiguous sectors; a longer
/// range takes several entries. Writers exclude each other. Look-ups take no lock and may be done
/// in any context; with `CONFIG_PREEMPT_RT`, look-ups and changes may sleep.
///
/// # Invariants
///
/// `table` points to an initialised table, which is enabled with a shift of zero.
///
/// # Examples
///
/// ```
/// use kernel::block::{badblocks::BadBlocks, Sector, Sectors};
///
/// let bad = BadBlocks::new()?;
/// bad.set(Sector(10), Sectors(5))?;
/// bad.clear(Sector(12), Sectors(1))?;
///
/// assert_eq!(bad.first(Sector(0), Sectors(100)), Some(Sector(10)..Sector(12)));
/// assert_eq!(bad.first(Sector(12), Sectors(1)), None);
/// assert!(bad.iter().eq([Sector(10)..Sector(12), Sector(13)..Sector(15)]));
/// # Ok::<(), Error>(())
/// ```
pub struct BadBlocks {
    table: NonNull<bindings::badblocks>,
}

// SAFETY: A table is not tied to a thread.
unsafe impl Send for BadBlocks {}

// SAFETY: C takes a lock to change the table, and look-ups detect concurrent changes.
unsafe impl Sync for BadBlocks {}

/// The first position that an entry cannot encode.
const END: Sector = Sector(1 << 54);

/// The shift of the position in an entry; the bits below hold the length minus one.
const POSITION_SHIFT: u32 = 9;

/// Returns the end of a range that is to be recorded, at most `END`.
fn end(at: Sector, len: Sectors) -> Sector {
    (at + len).min(END)
}

impl BadBlocks {
    /// The number of entries that a table has room for.
    pub const CAPACITY: usize = crate::page::PAGE_SIZE / size_of::<u64>();

    /// Creates an empty table. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if out of memory.
    pub fn new() -> Result<Self> {
        // SAFETY: The helper has no requirements.
        let table = unsafe { bindings::badblocks_alloc() };
        // INVARIANT: The helper has initialised the table and enabled it with a shift of zero.
        Ok(Self {
            table: NonNull::new(table).ok_or(ENOMEM)?,
        })
    }

    /// Marks `len` sectors from `at` on as bad.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the range is empty; nothing is recorded then.
    /// - `ENOSPC` if the table is full, or the range ends beyond sector 2^54. A part of the range
    ///   may have been recorded.
    pub fn set(&self, at: Sector, len: Sectors) -> Result {
        if len == Sectors::ZERO {
            return Err(EINVAL);
        }
        let fits = end(at, len) - at;
        // SAFETY: By the type invariant. C rejects an empty range, and this one does not end beyond
        // the positions that entries can encode.
        let recorded = unsafe { bindings::badblocks_set(self.table.as_ptr(), at.0, fits.0) };
        if recorded && fits == len {
            Ok(())
        } else {
            Err(ENOSPC)
        }
    }

    /// Marks `len` sectors from `at` on as good, including sectors that were not bad.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the range is empty.
    /// - `ENOSPC` if the range is in the middle of an entry, and the table has no room for the two
    ///   remainders of the entry. Nothing changes then.
    /// - `EBUSY` if interrupts are disabled, since C would enable them, and a block is bad.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::{badblocks::BadBlocks, Sector, Sectors},
    ///     sync::new_spinlock_irq,
    /// };
    ///
    /// let bad = BadBlocks::new()?;
    /// bad.set(Sector(10), Sectors(5))?;
    ///
    /// let lock = KBox::pin_init(new_spinlock_irq!(()), GFP_KERNEL)?;
    /// let held = lock.lock();
    /// # if !cfg!(CONFIG_PREEMPT_RT) {
    /// assert_eq!(bad.clear(Sector(10), Sectors(5)), Err(EBUSY));
    /// # }
    /// drop(held);
    /// assert_eq!(bad.clear(Sector(10), Sectors(5)), Ok(()));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn clear(&self, at: Sector, len: Sectors) -> Result {
        if len == Sectors::ZERO {
            return Err(EINVAL);
        }
        let end = end(at, len);
        // C counts the cleared sectors in `int`, so each call clears at most one entry.
        for bad in self.after(at).take_while(|bad| bad.start < end) {
            let start = bad.start.max(at);
            let len = bad.end.min(end) - start;
            // SAFETY: By the type invariant. The range is not empty, nor longer than an entry.
            to_result(unsafe { bindings::badblocks_clear(self.table.as_ptr(), start.0, len.0) })?;
        }
        Ok(())
    }

    /// Returns the first entry that has a bad sector in the `len` sectors from `at` on.
    ///
    /// The range returned is the whole entry, including sectors outside the range that was given.
    pub fn first(&self, at: Sector, len: Sectors) -> Option<Range<Sector>> {
        let end = at + len;
        self.after(at)
            .next()
            .filter(|bad| bad.start < end && at < end)
    }

    /// Returns the entries in order.
    ///
    /// Concurrent changes may be visible in the entries that are still to be returned.
    pub fn iter(&self) -> impl Iterator<Item = Range<Sector>> + '_ {
        self.after(Sector(0))
    }

    /// Returns the entries that end after `at`.
    fn after(&self, mut at: Sector) -> impl Iterator<Item = Range<Sector>> + '_ {
        iter::from_fn(move || {
            let bad = self.next(at)?;
            at = bad.end;
            Some(bad)
        })
    }

    /// Returns the first entry that ends after `at`, from a consistent state of the table.
    ///
    /// C's `badblocks_check` counts in `int` and fails on long ranges.
    fn next(&self, at: Sector) -> Option<Range<Sector>> {
        let table = self.table.as_ptr();
        loop {
            // SAFETY: By the type invariant.
            let seq = unsafe { bindings::badblocks_read_begin(table) };
            let found = self.search(at);
            // SAFETY: By the type invariant.
            if !unsafe { bindings::badblocks_read_retry(table, seq) } {
                return found;
            }
        }
    }

    /// Searches like [`Self::next`], but the result is arbitrary if the table changes meanwhile.
    fn search(&self, at: Sector) -> Option<Range<Sector>> {
        let (mut low, mut high) = (0, self.count());
        let mut found = None;
        while low < high {
            let middle = low + (high - low) / 2;
            let bad = self.entry(middle);
            if bad.end <= at {
                low = middle + 1;
            } else {
                found = Some(bad);
                high = middle;
            }
        }
        found
    }

    /// Returns the number of entries, at most [`Self::CAPACITY`].
    fn count(&self) -> usize {
        // SAFETY: By the type invariant.
        let count = unsafe { bindings::badblocks_count(self.table.as_ptr()) };
        usize::try_from(count).map_or(0, |count| count.min(Self::CAPACITY))
    }

    /// Returns entry `index`, or an arbitrary range if the table has fewer entries.
    fn entry(&self, index: usize) -> Range<Sector> {
        let index = index.min(Self::CAPACITY - 1);
        // SAFETY: By the type invariant, there is room for [`Self::CAPACITY`] entries.
        let entry = unsafe { bindings::badblocks_entry(self.table.as_ptr(), index as c_int) };
        let start = Sector((entry >> POSITION_SHIFT) & (END.0 - 1));
        let len = Sectors((entry & ((1 << POSITION_SHIFT) - 1)) + 1);
        start..start + len
    }
}

impl Drop for BadBlocks {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and the table is not used any more.
        unsafe { bindings::badblocks_free(self.table.as_ptr()) };
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_badblocks)]
mod tests {
    use super::*;

    const ALL: Sectors = Sectors(u64::MAX);

    #[test]
    fn long_ranges_take_several_entries() -> Result {
        let bad = BadBlocks::new()?;
        bad.set(Sector(1), Sectors(1000))?;
        bad.clear(Sector(3), Sectors(2))?;
        assert!(bad.iter().eq([
            Sector(1)..Sector(3),
            Sector(5)..Sector(513),
            Sector(513)..Sector(1001),
        ]));
        assert_eq!(bad.first(Sector(3), Sectors(2)), None);
        assert_eq!(bad.first(Sector(2), Sectors::ZERO), None);
        assert_eq!(
            bad.first(Sector(3), Sectors(3)),
            Some(Sector(5)..Sector(513))
        );
        assert_eq!(
            bad.first(Sector(1000), ALL),
            Some(Sector(513)..Sector(1001))
        );
        assert_eq!(bad.first(Sector(1001), ALL), None);
        Ok(())
    }

    #[test]
    fn ranges_may_be_as_long_as_can_be() -> Result {
        let bad = BadBlocks::new()?;
        bad.clear(Sector(0), ALL)?;
        for at in [0, 1 << 31, 1 << 33, (1 << 54) - 1] {
            bad.set(Sector(at), Sectors(1))?;
        }
        assert_eq!(
            bad.first(Sector(1), Sectors(1 << 31)),
            Some(Sector(1 << 31)..Sector((1 << 31) + 1))
        );
        assert_eq!(bad.first(Sector(1), Sectors((1 << 31) - 1)), None);
        bad.clear(Sector(1), Sectors(1 << 32))?;
        assert_eq!(bad.iter().count(), 3);
        bad.clear(Sector(1), ALL)?;
        assert_eq!(bad.iter().count(), 1);
        bad.clear(Sector(0), ALL)?;
        assert_eq!(bad.first(Sector(0), ALL), None);
        Ok(())
    }

    #[test]
    fn unrecordable_ranges_are_rejected() -> Result {
        let bad = BadBlocks::new()?;
        assert_eq!(bad.set(Sector(1), Sectors::ZERO), Err(EINVAL));
        assert_eq!(bad.clear(Sector(1), Sectors::ZERO), Err(EINVAL));
        assert_eq!(bad.set(END, Sectors(1)), Err(ENOSPC));
        assert_eq!(bad.set(Sector(u64::MAX), Sectors(1)), Err(ENOSPC));
        assert_eq!(bad.iter().count(), 0);
        assert_eq!(bad.set(Sector(END.0 - 1), Sectors(2)), Err(ENOSPC));
        assert!(bad.iter().eq([Sector(END.0 - 1)..END]));
        Ok(())
    }

    #[test]
    fn a_full_table_rejects_entries() -> Result {
        let bad = BadBlocks::new()?;
        for entry in 0..BadBlocks::CAPACITY as u64 {
            bad.set(Sector(entry * 10), Sectors(3))?;
        }
        assert_eq!(bad.set(Sector(5), Sectors(1)), Err(ENOSPC));
        assert_eq!(bad.clear(Sector(1), Sectors(1)), Err(ENOSPC));
        assert_eq!(bad.first(Sector(1), Sectors(1)), Some(Sector(0)..Sector(3)));
        bad.clear(Sector(2), Sectors(8))?;
        assert_eq!(
            bad.first(Sector(2), Sectors(9)),
            Some(Sector(10)..Sector(13))
        );
        assert_eq!(bad.iter().count(), BadBlocks::CAPACITY);
        Ok(())
    }
}
