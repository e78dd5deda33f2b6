// SPDX-License-Identifier: GPL-2.0

//! A place for a value with a destructor that is read under RCU.
//!
//! RCU does not call code of a driver, so an [`RcuPtr`] can only own what RCU can free without it.
//! Here, taking the value out waits for the readers instead.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)
//!
//! [`RcuPtr`]: super::rcu_ptr::RcuPtr

use super::{
    atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    rcu, //
};
use crate::{
    late_drop::check_may_sleep,
    prelude::*,
    types::ForeignOwnable, //
};
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};

/// A place for a value that readers use without a lock, until it is taken out.
///
/// # Examples
///
/// ```
/// use kernel::sync::{rcu, rcu_slot::RcuSlot};
///
/// let name = RcuSlot::new();
/// assert!(name.insert(KBox::new(*b"sda", GFP_KERNEL)?).is_ok());
/// // There is one already.
/// assert!(name.insert(KBox::new(*b"sdb", GFP_KERNEL)?).is_err());
///
/// let guard = rcu::read_lock();
/// let reader = name.load(&guard).ok_or(ENOENT)?;
/// assert_eq!(*reader, *b"sda");
/// drop(guard);
///
/// // No reader has it any more when it comes out.
/// let taken = name.take()?.ok_or(ENOENT)?;
/// assert_eq!(*taken, *b"sda");
/// assert!(name.load(&rcu::read_lock()).is_none());
/// # Ok::<(), Error>(())
/// ```
///
/// # Invariants
///
/// `ptr` is null, or was returned by `T::into_foreign`. A pointer that was here is owned again only
/// after a grace period, or when nothing borrows `self`.
pub struct RcuSlot<T: ForeignOwnable + Send + Sync + 'static> {
    ptr: Atomic<*mut c_void>,
    /// Not covariant: what is stored as a `T` must be one when it is loaded.
    _value: PhantomData<fn(T) -> T>,
}

// SAFETY: The value may be dropped by any thread, since `T` is `Send`.
unsafe impl<T: ForeignOwnable + Send + Sync + 'static> Send for RcuSlot<T> {}

// SAFETY: The value may be used by any thread, since `T` is `Sync`, and taken by any.
unsafe impl<T: ForeignOwnable + Send + Sync + 'static> Sync for RcuSlot<T> {}

impl<T: ForeignOwnable + Send + Sync + 'static> RcuSlot<T> {
    /// Creates an empty one.
    pub const fn new() -> Self {
        // INVARIANT: The pointer is null.
        Self {
            ptr: Atomic::new(ptr::null_mut()),
            _value: PhantomData,
        }
    }

    /// Puts a value in, which readers find from now on.
    ///
    /// Returns the value if there is one already.
    pub fn insert(&self, value: T) -> Result<(), T> {
        let new = value.into_foreign();
        // INVARIANT: The new pointer is from `into_foreign`. None was here.
        match self.ptr.cmpxchg(ptr::null_mut(), new, Release) {
            Ok(_) => Ok(()),
            // SAFETY: The pointer was just returned by `into_foreign`, and nobody else has it.
            Err(_) => Err(unsafe { T::from_foreign(new) }),
        }
    }

    /// Returns the value, for as long as the reader is in its critical section.
    #[inline]
    pub fn load<'a>(&'a self, _reader: &'a rcu::Guard) -> Option<T::Borrowed<'a>> {
        let ptr = NonNull::new(self.ptr.load(Acquire))?;
        // SAFETY: By the type invariants the pointer is from `into_foreign`. It is not owned during
        // `'a`: the read-side critical section, during which it was found, lasts as long, and
        // `self` is borrowed.
        Some(unsafe { T::borrow(ptr.as_ptr()) })
    }

    /// Takes the value out, and waits until no reader has it. Sleeps if there is a value.
    ///
    /// A reader of an [`Arc`](super::Arc) can have cloned it, and keeps the clone.
    ///
    /// Returns [`None`] if there is no value. Another caller may have taken one, and still wait for
    /// its readers.
    ///
    /// The value must not be taken out under a guard of RCU or a spinlock. Not every kernel can
    /// tell that the caller cannot sleep there; in one without preemption counts, the caller's own
    /// references would outlive the value.
    ///
    /// # Errors
    ///
    /// `EDEADLK` if the caller certainly cannot sleep. The value remains.
    pub fn take(&self) -> Result<Option<T>> {
        check_may_sleep()?;
        // INVARIANT: The value is owned only after the grace period below.
        let old = self.ptr.xchg(ptr::null_mut(), Relaxed);
        let Some(old) = NonNull::new(old) else {
            return Ok(None);
        };
        rcu::synchronize_rcu();
        // SAFETY: By the type invariants the pointer is from `into_foreign`. The readers that had
        // found it have left their critical sections, and no more find it. The caller is not one of
        // them: it may sleep, which a reader may not. Where the check cannot tell, the
        // documentation asks for that, as for anything that sleeps under a guard.
        Ok(Some(unsafe { T::from_foreign(old.as_ptr()) }))
    }
}

impl<T: ForeignOwnable + Send + Sync + 'static> Default for RcuSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ForeignOwnable + Send + Sync + 'static> Drop for RcuSlot<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the pointer is null or from `into_foreign`. Nothing
        // borrows `self`, so no reader has it.
        drop(unsafe { T::try_from_foreign(*self.ptr.get_mut()) });
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_rcu_slot)]
mod tests {
    use super::*;
    use crate::sync::Arc;

    /// Counts how often it was dropped.
    struct Counted(Arc<Atomic<u32>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_value_is_dropped_once() -> Result {
        let drops = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let new = || KBox::new(Counted(drops.clone()), GFP_KERNEL);

        let slot = RcuSlot::new();
        assert!(slot.insert(new()?).is_ok());
        drop(slot.insert(new()?));
        assert_eq!(drops.load(Relaxed), 1);

        drop(slot.take()?);
        assert_eq!(drops.load(Relaxed), 2);
        assert!(slot.take()?.is_none());

        assert!(slot.insert(new()?).is_ok());
        drop(slot);
        assert_eq!(drops.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn a_reader_does_not_take() -> Result {
        if !cfg!(CONFIG_PREEMPT_COUNT) {
            return Ok(());
        }
        let slot = RcuSlot::new();
        assert!(slot.insert(KBox::new(1, GFP_KERNEL)?).is_ok());
        let guard = rcu::read_lock();
        assert_eq!(slot.take().err(), Some(EDEADLK));
        assert_eq!(slot.load(&guard), Some(&1));
        Ok(())
    }
}
