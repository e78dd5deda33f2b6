// SPDX-License-Identifier: GPL-2.0

//! A sequence counter, by which readers notice that what they have read was being written.
//!
//! A reader takes no lock and writes no memory. It compares the counter before and after, and
//! starts again if there was a write in between. Such a reader sees bytes that change under it, so
//! they have to be read by means that tolerate that, for example [`Folio::copy_to_slice`].
//!
//! The counter can have a few bits of data. A reader gets them together with what the counter
//! protects, and they take no memory of their own:
//!
//! ```text
//!      63                                   N+1  N              1   0
//!     +----------------------------------------+-----------------+------+
//!     | number of writes, modulo a power of 2   | N bits of data  | busy |
//!     +----------------------------------------+-----------------+------+
//! ```
//!
//! C header: [`include/linux/seqlock.h`](srctree/include/linux/seqlock.h)
//!
//! [`Folio::copy_to_slice`]: crate::folio::Folio::copy_to_slice

use super::{
    atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    barrier, //
};

/// Set while a write is in progress.
const BUSY: usize = 1;

/// Where the data starts.
const DATA_SHIFT: u32 = 1;

/// A sequence counter with `BITS` bits of data.
///
/// It has the size of a word. Fewer bits of data leave more for the number of writes: a reader that
/// sleeps while exactly that many writes happen, modulo a power of two, does not notice them. So
/// `BITS` is at most half of the bits of a word.
///
/// # Examples
///
/// ```
/// use kernel::sync::{new_spinlock, seqcount::SeqCount};
///
/// let count = SeqCount::<8>::new(0);
/// pin_init::stack_pin_init!(let lock = new_spinlock!(()));
///
/// // A writer holds a lock that keeps out others.
/// let guard = lock.lock();
/// count.write(&guard, |data| data | 0x81);
/// drop(guard);
///
/// assert_eq!(count.data(), 0x81);
/// assert_eq!(count.read(|data| data + 1), Some(0x82));
///
/// // A reader that runs into a write has to try again.
/// assert_eq!(count.read(|_| count.write(&(), |_| 0)), None);
/// ```
pub struct SeqCount<const BITS: u32 = 0> {
    word: Atomic<usize>,
}

impl<const BITS: u32> SeqCount<BITS> {
    /// The bits of the data, before they are shifted.
    const MASK: usize = {
        assert!(BITS <= usize::BITS / 2);
        !(!0 << BITS)
    };

    /// A write.
    const ONE: usize = 1 << (DATA_SHIFT + BITS);

    /// Creates a counter with this data, of which only the lowest `BITS` bits count.
    #[inline]
    pub const fn new(data: usize) -> Self {
        Self {
            word: Atomic::new((data & Self::MASK) << DATA_SHIFT),
        }
    }

    #[inline]
    fn data_of(word: usize) -> usize {
        (word >> DATA_SHIFT) & Self::MASK
    }

    /// Returns the data. During a write, these are those from before it.
    #[inline]
    pub fn data(&self) -> usize {
        Self::data_of(self.word.load(Relaxed))
    }

    /// Begins to read what the counter protects: C's `read_seqcount_begin()`, which does not wait
    /// here. Returns [`None`] if a write is in progress.
    #[inline(always)]
    pub fn begin_read(&self) -> Option<SeqRead<'_, BITS>> {
        let before = self.word.load(Acquire);
        (before & BUSY == 0).then_some(SeqRead {
            count: self,
            before,
        })
    }

    /// Calls `read` with the data. Returns what it returns, or [`None`] if a write was in progress
    /// before or after: what `read` has seen is then of no use.
    #[inline(always)]
    pub fn read<R>(&self, read: impl FnOnce(usize) -> R) -> Option<R> {
        let sequence = self.begin_read()?;
        let result = read(sequence.data());
        sequence.is_valid().then_some(result)
    }

    /// Begins to write what the counter protects: C's `write_seqcount_begin()`. Readers fail until
    /// [`SeqWrite::end`] is called.
    ///
    /// `_exclusion` is what keeps out other writers, such as the guard of a lock. Two writers at a
    /// time are memory safe, but their readers may take a mixture of old and new for consistent.
    #[inline(always)]
    pub fn begin_write<G: ?Sized>(&self, _exclusion: &G) -> SeqWrite<'_, BITS> {
        let busy = self.word.load(Relaxed) | BUSY;
        self.word.store(busy, Relaxed);
        // The mark is seen before any change.
        barrier::smp_mb(barrier::Write);
        SeqWrite { count: self, busy }
    }

    /// Calls `write` with the data. It changes what the counter protects, and returns the new data.
    ///
    /// `exclusion` is as for [`Self::begin_write`].
    #[inline(always)]
    pub fn write<G: ?Sized>(&self, exclusion: &G, write: impl FnOnce(usize) -> usize) {
        let sequence = self.begin_write(exclusion);
        let data = write(sequence.data());
        sequence.end(data);
    }

    /// Makes all readers fail until the next write, as if one had begun that does not end. For a
    /// value that is removed, and that readers have found before.
    ///
    /// `exclusion` is as for [`Self::begin_write`].
    #[inline]
    pub fn invalidate<G: ?Sized>(&self, exclusion: &G) {
        let _ = self.begin_write(exclusion);
    }
}

/// A read that has begun.
///
/// # Examples
///
/// ```
/// use kernel::sync::seqcount::SeqCount;
///
/// let count = SeqCount::<1>::new(1);
/// let read = count.begin_read().ok_or(EAGAIN)?;
/// let write = count.begin_write(&());
/// assert!(count.begin_read().is_none());
/// write.end(0);
/// assert_eq!(read.data(), 1);
/// assert!(!read.is_valid());
/// # Ok::<(), Error>(())
/// ```
#[must_use = "what was read may be inconsistent"]
pub struct SeqRead<'a, const BITS: u32> {
    count: &'a SeqCount<BITS>,
    before: usize,
}

impl<const BITS: u32> SeqRead<'_, BITS> {
    /// Returns the data.
    #[inline(always)]
    pub fn data(&self) -> usize {
        SeqCount::<BITS>::data_of(self.before)
    }

    /// Returns whether there was no write since the read has begun: C's `read_seqcount_retry()`,
    /// inverted.
    #[inline(always)]
    pub fn is_valid(self) -> bool {
        // The comparison comes after all reads.
        barrier::smp_mb(barrier::Read);
        self.count.word.load(Relaxed) == self.before
    }
}

/// A write that has begun. Readers fail until it ends.
#[must_use = "readers fail until the write ends"]
pub struct SeqWrite<'a, const BITS: u32> {
    count: &'a SeqCount<BITS>,
    busy: usize,
}

impl<const BITS: u32> SeqWrite<'_, BITS> {
    /// Returns the data from before the write.
    #[inline(always)]
    pub fn data(&self) -> usize {
        SeqCount::<BITS>::data_of(self.busy)
    }

    /// Ends the write: C's `write_seqcount_end()`. Readers get `data` from now on.
    #[inline(always)]
    pub fn end(self, data: usize) {
        let mask = SeqCount::<BITS>::MASK;
        let count = self.busy & !(mask << DATA_SHIFT);
        // The mark becomes a part of the number.
        let after = count.wrapping_add(SeqCount::<BITS>::ONE - BUSY) | (data & mask) << DATA_SHIFT;
        self.count.word.store(after, Release);
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_seqcount)]
mod tests {
    use super::*;

    #[test]
    fn data_and_count_do_not_mix() {
        let count = SeqCount::<8>::new(0x1ff);
        assert_eq!(count.data(), 0xff);
        for data in [0, 0xff, 0x55, 0x1aa] {
            count.write(&(), |_| data);
            assert_eq!(count.data(), data & 0xff);
        }
        // As many writes as the counter has room for, and one more.
        let count = SeqCount::<{ usize::BITS / 2 }>::new(7);
        count.word.store(
            count.word.load(Relaxed) | !0 << (1 + usize::BITS / 2),
            Relaxed,
        );
        count.write(&(), |data| data);
        assert_eq!(count.data(), 7);
        assert_eq!(count.read(|data| data), Some(7));
    }

    #[test]
    fn a_reader_notices_a_write() {
        let count = SeqCount::<0>::new(0);
        assert!(count.read(|_| ()).is_some());
        count.write(&(), |_| {
            assert!(count.read(|_| ()).is_none());
            0
        });
        assert!(count.read(|_| ()).is_some());
        assert!(count.read(|_| count.write(&(), |_| 0)).is_none());
        assert!(count.read(|_| count.invalidate(&())).is_none());
        assert!(count.read(|_| ()).is_none());
    }
}
