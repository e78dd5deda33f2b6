// SPDX-License-Identifier: GPL-2.0

//! A pointer that is read under RCU.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::{
    atomic::{
        Acquire,
        Atomic,
        Full, //
    },
    rcu,
    rcu_free::{
        Callbacks,
        RcuFree,
        Removed, //
    },
};
use crate::prelude::*;
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};

/// A value that readers use without a lock while it may be replaced.
///
/// C's `__rcu` pointer: [`Self::load`] is `rcu_dereference()`, and [`Self::replace`] is
/// `rcu_replace_pointer()`. A replacement is one atomic operation, so no lock is needed for it. The
/// value that was replaced is freed after a grace period.
///
/// # Examples
///
/// ```
/// use kernel::sync::{rcu, rcu_box::RcuBox, rcu_ptr::RcuPtr};
///
/// struct Limits {
///     read: u32,
///     write: u32,
/// }
///
/// let limits = RcuPtr::new(Some(RcuBox::new(Limits { read: 1, write: 2 }, GFP_KERNEL)?))?;
///
/// // A reader sees the limits of one time, not some old and some new.
/// let guard = rcu::read_lock();
/// let before = limits.load(&guard).ok_or(ENOENT)?;
/// assert_eq!((before.read, before.write), (1, 2));
/// drop(guard);
///
/// drop(limits.replace(Some(RcuBox::new(Limits { read: 3, write: 4 }, GFP_KERNEL)?)));
/// assert_eq!(limits.load(&rcu::read_lock()).map(|new| new.write), Some(4));
/// # Ok::<(), Error>(())
/// ```
///
/// # Invariants
///
/// `ptr` is null, or was returned by `T::into_foreign`. A pointer that was here is freed after a
/// grace period, or when nothing borrows `self`.
pub struct RcuPtr<T: RcuFree> {
    ptr: Atomic<*mut c_void>,
    _callbacks: Callbacks,
    /// Not covariant: what is stored as a `T` must be one when it is loaded.
    _value: PhantomData<fn(T) -> T>,
}

// SAFETY: The value may be dropped by any thread, since `T` is `Send`.
unsafe impl<T: RcuFree> Send for RcuPtr<T> {}

// SAFETY: The value may be used by any thread, since `T` is `Sync`, and freed by any.
unsafe impl<T: RcuFree> Sync for RcuPtr<T> {}

impl<T: RcuFree> RcuPtr<T> {
    /// Creates a pointer to `value`.
    ///
    /// # Errors
    ///
    /// None in the kernel crate. In an external module, for values that a callback frees:
    /// [`ENOMEM`]; [`EAGAIN`] while the parameters of the module are being parsed; `ENOTSUPP` in a
    /// kernel without sysfs or Tasks RCU.
    pub fn new(value: Option<T>) -> Result<Self> {
        let callbacks = Callbacks::new(T::HAS_CALLBACK)?;
        // INVARIANT: The pointer is from `into_foreign`, or null.
        Ok(Self {
            ptr: Atomic::new(Self::into_raw(value)),
            _callbacks: callbacks,
            _value: PhantomData,
        })
    }

    #[inline]
    fn into_raw(value: Option<T>) -> *mut c_void {
        value.map_or(ptr::null_mut(), T::into_foreign)
    }

    /// Returns the value, for as long as the reader is in its critical section.
    #[inline]
    pub fn load<'a>(&'a self, _reader: &'a rcu::Guard) -> Option<T::Borrowed<'a>> {
        let ptr = NonNull::new(self.ptr.load(Acquire))?;
        // SAFETY: By the type invariants the pointer is from `into_foreign`. It is not freed during
        // `'a`: the read-side critical section, during which it was found, lasts as long, and
        // `self` is borrowed.
        Some(unsafe { T::borrow(ptr.as_ptr()) })
    }

    /// Replaces the value. Readers find the new one from now on. Returns the old one.
    #[inline]
    pub fn replace(&self, new: Option<T>) -> Option<Removed<'_, T>> {
        // INVARIANT: The new pointer is from `into_foreign`, or null, and the old one is freed
        // after a grace period.
        let old = NonNull::new(self.ptr.xchg(Self::into_raw(new), Full))?;
        // SAFETY: By the type invariants the pointer is from `into_foreign`. `self`, which has
        // callbacks for `T`, is borrowed while the result exists.
        Some(unsafe { Removed::new(old) })
    }
}

impl<T: RcuFree> Drop for RcuPtr<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the pointer is null or from `into_foreign`. Nothing
        // borrows `self`, so no reader has it.
        drop(unsafe { T::try_from_foreign(*self.ptr.get_mut()) });
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_rcu_ptr)]
mod tests {
    use super::*;
    use crate::sync::rcu_box::RcuBox;

    #[test]
    fn a_removed_value_can_be_read() -> Result {
        let ptr = RcuPtr::new(None)?;
        assert!(ptr.load(&rcu::read_lock()).is_none());
        assert!(ptr.replace(Some(RcuBox::new(1, GFP_KERNEL)?)).is_none());

        let guard = rcu::read_lock();
        let one = ptr.load(&guard).ok_or(EINVAL)?;
        let removed = ptr.replace(None).ok_or(EINVAL)?;
        assert_eq!(*removed.borrow(), 1);
        drop(removed);
        assert_eq!(*one, 1);
        assert!(ptr.load(&guard).is_none());
        Ok(())
    }
}
