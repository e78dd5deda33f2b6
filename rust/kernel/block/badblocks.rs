// SPDX-License-Identifier: GPL-2.0

//! The places of a disk that are known to be bad.
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

/// The table of the bad places of a disk: C's `struct badblocks`.
///
/// It has room for [`BadBlocks::CAPACITY`] entries, each of up to 512 sectors that follow each
/// other; a longer place takes several. Changes exclude each other. Looking up takes no lock, so it
/// may be done anywhere; not so with `CONFIG_PREEMPT_RT`, where looking up and changing may sleep.
///
/// # Invariants
///
/// The table at `table` is initialised, and in use without a shift.
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

// SAFETY: A table belongs to no thread.
unsafe impl Send for BadBlocks {}

// SAFETY: C locks the table against changes, and finds out that one came between when looking up.
unsafe impl Sync for BadBlocks {}

/// The first position that the table has no bits for.
const END: Sector = Sector(1 << 54);

/// Where the position stands in an entry; below it is the length, less by one.
const POSITION_SHIFT: u32 = 9;

/// Where a range that is to be recorded ends, as far as it can be.
fn end(at: Sector, len: Sectors) -> Sector {
    (at + len).min(END)
}

impl BadBlocks {
    /// How many entries a table has room for.
    pub const CAPACITY: usize = crate::page::PAGE_SIZE / size_of::<u64>();

    /// Makes an empty table. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new() -> Result<Self> {
        // SAFETY: Nothing is asked of the caller.
        let table = unsafe { bindings::badblocks_alloc() };
        // INVARIANT: The helper has initialised it so.
        Ok(Self {
            table: NonNull::new(table).ok_or(ENOMEM)?,
        })
    }

    /// Records that `len` sectors from `at` on are bad.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there are no such sectors; nothing is recorded then.
    /// - `ENOSPC` if the table is full, or the end of the range beyond sector 2^54. A part of the
    ///   range may have been recorded.
    pub fn set(&self, at: Sector, len: Sectors) -> Result {
        if len == Sectors::ZERO {
            return Err(EINVAL);
        }
        let fits = end(at, len) - at;
        // SAFETY: By the type invariant. C refuses an empty range, and this one ends where the
        // positions of entries do.
        let recorded = unsafe { bindings::badblocks_set(self.table.as_ptr(), at.0, fits.0) };
        if recorded && fits == len {
            Ok(())
        } else {
            Err(ENOSPC)
        }
    }

    /// Records that `len` sectors from `at` on are good, whether they were bad before or not.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there are no such sectors.
    /// - `ENOSPC` if the range is the middle of an entry, and the table has no room for what is
    ///   left of it. Nothing changes then.
    /// - `EBUSY` where interrupts are disabled, since C would enable them.
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
        // C counts what it clears in `int`, so it is given no more than an entry.
        for bad in self.after(at).take_while(|bad| bad.start < end) {
            let start = bad.start.max(at);
            let len = bad.end.min(end) - start;
            // SAFETY: By the type invariant. The range is not empty, nor longer than an entry.
            to_result(unsafe { bindings::badblocks_clear(self.table.as_ptr(), start.0, len.0) })?;
        }
        Ok(())
    }

    /// Looks for a bad sector among `len` of them from `at` on.
    ///
    /// Returns the first entry with one, all of it, also what lies outside of the range.
    pub fn first(&self, at: Sector, len: Sectors) -> Option<Range<Sector>> {
        let end = at + len;
        self.after(at)
            .next()
            .filter(|bad| bad.start < end && at < end)
    }

    /// The entries in order.
    ///
    /// A change that comes meanwhile may show in those that are left.
    pub fn iter(&self) -> impl Iterator<Item = Range<Sector>> + '_ {
        self.after(Sector(0))
    }

    /// The entries that end after `at`.
    fn after(&self, mut at: Sector) -> impl Iterator<Item = Range<Sector>> + '_ {
        iter::from_fn(move || {
            let bad = self.next(at)?;
            at = bad.end;
            Some(bad)
        })
    }

    /// The first entry that ends after `at`, as the table was at some moment.
    ///
    /// C's `badblocks_check` is no use: it counts in `int`, and goes astray in long ranges.
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

    /// As [`Self::next`], but may find anything if the table changes meanwhile.
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

    /// How many entries there are, at most [`Self::CAPACITY`].
    fn count(&self) -> usize {
        // SAFETY: By the type invariant.
        let count = unsafe { bindings::badblocks_count(self.table.as_ptr()) };
        usize::try_from(count).map_or(0, |count| count.min(Self::CAPACITY))
    }

    /// Entry `index`, or anything if there are not so many.
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
        // SAFETY: By the type invariant, and it is not used any more.
        unsafe { bindings::badblocks_free(self.table.as_ptr()) };
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_badblocks)]
mod tests {
    use super::*;

    const ALL: Sectors = Sectors(u64::MAX);

    #[test]
    fn long_places_take_several_entries() -> Result {
        let bad = BadBlocks::new()?;
        bad.set(Sector(1), Sectors(1000))?;
        bad.clear(Sector(3), Sectors(2))?;
        let entries = [(1, 3), (5, 513), (513, 1001)];
        assert!(bad.iter().map(|bad| (bad.start.0, bad.end.0)).eq(entries));
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
    fn what_cannot_be_recorded_is_refused() -> Result {
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
    fn a_full_table_takes_no_more() -> Result {
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
