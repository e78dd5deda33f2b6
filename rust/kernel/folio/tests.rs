// SPDX-License-Identifier: GPL-2.0

//! Tests of folios: borders of copies, failing allocations, the end of their memory.

use super::{
    Folio,
    FolioBox, //
};
use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use core::ptr::NonNull;

/// A reference to a folio, by which a test sees whether its owner has put its own.
pub(crate) struct Witness(NonNull<bindings::folio>);

impl Witness {
    /// Takes a reference.
    pub(crate) fn new<P: Send + Sync + 'static>(folio: &Folio<P>) -> Result<Self> {
        let folio = NonNull::new(folio.as_raw()).ok_or(EINVAL)?;
        // SAFETY: The folio is borrowed.
        unsafe { bindings::folio_get(folio.as_ptr()) };
        Ok(Self(folio))
    }

    /// Returns whether this is the last reference: without it, the memory would be free.
    pub(crate) fn is_last(&self) -> bool {
        let page = self.0.cast::<bindings::page>().as_ptr();
        // SAFETY: The reference keeps the folio, which begins with a page.
        let count = unsafe { &raw mut (*page)._refcount.counter };
        // SAFETY: C uses it as an atomic.
        unsafe { Atomic::from_ptr(count) }.load(Relaxed) == 1
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: The reference is ours.
        unsafe { bindings::folio_put(self.0.as_ptr()) };
    }
}

/// Calls `f` while the `nth` allocation that may fail, and only that one, fails.
#[cfg(any(CONFIG_FAIL_PAGE_ALLOC, CONFIG_FAILSLAB))]
pub(crate) fn with_failure<R>(nth: u32, f: impl FnOnce() -> R) -> R {
    // SAFETY: It is the running task, which alone uses the field.
    let fail_nth = unsafe { &raw mut (*crate::task::Task::current_raw()).fail_nth };
    // SAFETY: As above.
    unsafe { fail_nth.write_volatile(nth) };
    let result = f();
    // SAFETY: As above.
    unsafe { fail_nth.write_volatile(0) };
    result
}

#[macros::kunit_tests(rust_folio)]
mod suite {
    use super::*;
    use crate::{
        page::PAGE_SIZE,
        sync::{
            rcu,
            rcu_free::RcuBatch,
            rcu_ptr::RcuPtr,
            seqcount::SeqCount, //
        },
    };

    /// Returns a folio of four pages of which no byte is zero, nor like the next.
    fn pattern() -> Result<FolioBox> {
        let folio = FolioBox::new(2, GFP_KERNEL, ())?;
        for page in 0..4 {
            for i in 0..PAGE_SIZE / 64 {
                let mut bytes = [0; 64];
                for (j, byte) in bytes.iter_mut().enumerate() {
                    *byte = ((page * 7 + i * 64 + j) % 251) as u8 + 1;
                }
                folio.copy_from_slice(page * PAGE_SIZE + i * 64, &bytes)?;
            }
        }
        Ok(folio)
    }

    /// Returns all bytes.
    fn bytes(folio: &Folio) -> Result<KVVec<u8>> {
        let mut bytes = KVVec::from_elem(0, folio.size(), GFP_KERNEL)?;
        folio.copy_to_slice(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Ranges of which a folio of `size` bytes lacks some.
    fn outside(size: usize) -> [(usize, usize); 6] {
        [
            (0, size + 1),
            (1, size),
            (size, 1),
            (size + 1, 0),
            (usize::MAX, 1),
            (usize::MAX - 1, 3),
        ]
    }

    #[test]
    fn copies_end_at_the_border() -> Result {
        let folio = pattern()?;
        let (size, before) = (folio.size(), bytes(&folio)?);
        let mut buffer = KVVec::from_elem(0, size + 1, GFP_KERNEL)?;
        let other = FolioBox::new(3, GFP_KERNEL | __GFP_ZERO, ())?;
        for (offset, len) in outside(size) {
            assert_eq!(folio.copy_to_slice(offset, &mut buffer[..len]), Err(EINVAL));
            assert_eq!(folio.copy_from_slice(offset, &buffer[..len]), Err(EINVAL));
            assert_eq!(folio.zero(offset, len), Err(EINVAL));
            assert_eq!(folio.copy_from_folio(offset, &other, 0, len), Err(EINVAL));
            assert_eq!(other.copy_from_folio(0, &folio, offset, len), Err(EINVAL));
        }
        assert_eq!(folio.zero(1, usize::MAX), Err(EINVAL));
        assert!(bytes(&folio)?[..] == before[..]);
        assert!(bytes(&other)?.iter().all(|byte| *byte == 0));
        assert!(buffer.iter().all(|byte| *byte == 0));
        // No bytes at the end are no error.
        folio.copy_to_slice(size, &mut [])?;
        folio.copy_from_slice(size, &[])?;
        folio.copy_from_folio(size, &other, other.size(), 0)?;
        folio.zero(size, 0)
    }

    #[test]
    fn copies_change_their_range_only() -> Result {
        let ranges = [
            (0, 1),
            (PAGE_SIZE - 1, 2),
            (PAGE_SIZE, PAGE_SIZE),
            (5, 3 * PAGE_SIZE),
            (0, 4 * PAGE_SIZE),
            (4 * PAGE_SIZE - 1, 1),
        ];
        let pattern = pattern()?;
        let all = bytes(&pattern)?;
        for (offset, len) in ranges {
            let inside = offset..offset + len;
            let folio = FolioBox::new(2, GFP_KERNEL | __GFP_ZERO, ())?;
            folio.copy_from_folio(offset, &pattern, 4 * PAGE_SIZE - len, len)?;
            let mut found = bytes(&folio)?;
            assert!(found[inside.clone()] == all[4 * PAGE_SIZE - len..]);
            found[inside.clone()].fill(0);
            assert!(found.iter().all(|byte| *byte == 0));

            folio.copy_from_slice(offset, &all[..len])?;
            let mut part = KVVec::from_elem(0, len, GFP_KERNEL)?;
            folio.copy_to_slice(offset, &mut part)?;
            assert!(part[..] == all[..len]);

            folio.copy_from_slice(0, &all)?;
            folio.zero(offset, len)?;
            for (i, byte) in bytes(&folio)?.iter().enumerate() {
                assert_eq!(*byte, if inside.contains(&i) { 0 } else { all[i] });
            }
        }
        Ok(())
    }

    #[test]
    fn allocations_fail() -> Result {
        assert_eq!(FolioBox::new(u32::MAX, GFP_KERNEL, ()).err(), Some(ENOMEM));
        // More than the allocator has, about which it would warn.
        assert_eq!(FolioBox::new(30, GFP_KERNEL, ()).err(), Some(ENOMEM));
        #[cfg(CONFIG_FAIL_PAGE_ALLOC)]
        {
            let flags = GFP_NOWAIT | __GFP_NOWARN;
            let folio = with_failure(1, || FolioBox::new(1, flags, ()));
            assert_eq!(folio.err(), Some(ENOMEM));
        }
        Ok(())
    }

    #[test]
    fn private_words_are_of_any_small_type() -> Result {
        static SEVEN: u8 = 7;

        let reference = FolioBox::new(0, GFP_KERNEL, &SEVEN)?;
        assert_eq!(**reference.private(), 7);
        let parts = FolioBox::new(3, GFP_KERNEL, (1u8, Some(2u16)))?;
        assert_eq!(*parts.private(), (1, Some(2)));
        let count = FolioBox::new(1, GFP_KERNEL, SeqCount::<8>::new(9))?;
        count.private().write(&(), |data| data + 1);
        assert_eq!(count.private().data(), 10);
        assert_eq!((count.order(), count.size()), (1, 2 * PAGE_SIZE));
        Ok(())
    }

    #[test]
    fn an_owner_puts_its_reference_at_once() -> Result {
        let folio = pattern()?;
        let witness = Witness::new(&folio)?;
        assert!(!witness.is_last());
        drop(folio);
        assert!(witness.is_last());

        let ptr = RcuPtr::new(Some(pattern()?))?;
        let witness = ptr
            .load(&rcu::read_lock())
            .map(Witness::new)
            .ok_or(EINVAL)??;
        drop(ptr);
        assert!(witness.is_last());
        Ok(())
    }

    /// Makes a pointer to a folio of that order, and a reference to the folio.
    fn pointer(order: u32, private: u64) -> Result<(RcuPtr<FolioBox<u64>>, Witness)> {
        let folio = FolioBox::new(order, GFP_KERNEL, private)?;
        folio.copy_from_slice(0, b"rnull")?;
        let witness = Witness::new(&folio)?;
        Ok((RcuPtr::new(Some(folio))?, witness))
    }

    #[test]
    fn a_removed_folio_is_put_after_a_grace_period() -> Result {
        for order in [0, 1, 2, 4] {
            let (ptr, witness) = pointer(order, !0 - 1)?;
            let reader = rcu::read_lock();
            let folio = ptr.load(&reader).ok_or(EINVAL)?;
            let removed = ptr.replace(None).ok_or(EINVAL)?;
            assert_eq!(*removed.borrow().private(), !0 - 1);
            drop(removed);
            // The callback is queued, and must not have touched what a reader uses.
            assert!(!witness.is_last());
            let mut bytes = [0; 5];
            folio.copy_to_slice(0, &mut bytes)?;
            assert_eq!((&bytes, *folio.private()), (b"rnull", !0 - 1));
            assert_eq!(folio.order(), order);
            drop(reader);
            rcu::rcu_barrier();
            assert!(witness.is_last());
        }
        Ok(())
    }

    #[test]
    fn nothing_is_put_before_its_batch_is_dropped() -> Result {
        let mut pointers = KVec::new();
        for i in 0..50 {
            pointers.push(pointer((i % 3) as u32, i)?, GFP_KERNEL)?;
        }
        let mut batch = RcuBatch::new();
        for (ptr, _) in &pointers {
            batch.extend(ptr.replace(None));
            batch.extend(ptr.replace(None));
        }
        rcu::synchronize_rcu();
        rcu::rcu_barrier();
        assert!(!pointers.iter().any(|(_, witness)| witness.is_last()));
        let reader = rcu::read_lock();
        drop(batch);
        assert!(!pointers.iter().any(|(_, witness)| witness.is_last()));
        drop(reader);
        rcu::rcu_barrier();
        assert!(pointers.iter().all(|(_, witness)| witness.is_last()));
        // An empty one has nothing to put.
        drop(RcuBatch::<FolioBox>::new());
        Ok(())
    }
}
