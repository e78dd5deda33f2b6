// SPDX-License-Identifier: GPL-2.0

//! A box that an RCU container can own.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::rcu_free::RcuFree;
use crate::{
    alloc::Flags,
    bindings,
    prelude::*,
    types::{
        ForeignOwnable,
        Opaque, //
    },
};
use core::{
    mem,
    ops::Deref,
    ptr::NonNull, //
};

/// The allocation of an [`RcuBox`].
struct Inner<T> {
    head: Opaque<bindings::callback_head>,
    value: T,
}

/// A value in an allocation of its own, which can be freed after a grace period.
///
/// The value must have no destructor: RCU would have to call it at a time when the driver may have
/// been unloaded.
///
/// # Examples
///
/// ```
/// use kernel::sync::rcu_box::RcuBox;
///
/// let answer = RcuBox::new(42, GFP_KERNEL)?;
/// assert_eq!(*answer, 42);
/// # Ok::<(), Error>(())
/// ```
pub struct RcuBox<T: Send + Sync + 'static> {
    inner: KBox<Inner<T>>,
}

impl<T: Send + Sync + 'static> RcuBox<T> {
    /// The head is within a page of the start of the allocation, as `kvfree_call_rcu()` requires.
    const FITS: () = assert!(mem::offset_of!(Inner<T>, head) < 4096);

    /// Allocates memory with `flags`, and moves `value` to it.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if the allocation fails.
    #[inline]
    pub fn new(value: T, flags: Flags) -> Result<Self> {
        const { assert!(!mem::needs_drop::<T>(), "the value must have no destructor") };
        let inner = Inner {
            head: Opaque::uninit(),
            value,
        };
        Ok(Self {
            inner: KBox::new(inner, flags)?,
        })
    }
}

impl<T: Send + Sync + 'static> Deref for RcuBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner.value
    }
}

// SAFETY: A box is shared only as its value is, which is `Send`.
unsafe impl<T: Send + Sync + 'static> Send for RcuBox<T> {}

// SAFETY: The head is used only once the box is freed, and the value is `Sync`.
unsafe impl<T: Send + Sync + 'static> Sync for RcuBox<T> {}

// SAFETY: The pointer is that of a `KBox`, so it is aligned and not null.
unsafe impl<T: Send + Sync + 'static> ForeignOwnable for RcuBox<T> {
    const FOREIGN_ALIGN: usize = mem::align_of::<Inner<T>>();

    type Borrowed<'a> = &'a T;
    type BorrowedMut<'a> = &'a T;

    #[inline]
    fn into_foreign(self) -> *mut c_void {
        KBox::into_raw(self.inner).cast()
    }

    #[inline]
    unsafe fn from_foreign(ptr: *mut c_void) -> Self {
        // SAFETY: By the safety requirements it is a pointer from `into_foreign`.
        let inner = unsafe { KBox::from_raw(ptr.cast()) };
        Self { inner }
    }

    #[inline]
    unsafe fn borrow<'a>(ptr: *mut c_void) -> &'a T {
        // SAFETY: By the safety requirements the allocation exists during `'a`, and only shared
        // references to the value do.
        unsafe { &(*ptr.cast::<Inner<T>>()).value }
    }

    #[inline]
    unsafe fn borrow_mut<'a>(ptr: *mut c_void) -> &'a T {
        // SAFETY: By the safety requirements, which include those of `borrow`.
        unsafe { Self::borrow(ptr) }
    }
}

// SAFETY: C frees the allocation after a grace period, without any code of this crate.
unsafe impl<T: Send + Sync + 'static> RcuFree for RcuBox<T> {
    type Batch = ();

    const HAS_CALLBACK: bool = false;

    #[inline]
    unsafe fn free_later(ptr: NonNull<c_void>, _batch: &mut ()) {
        let () = Self::FITS;
        let inner = ptr.cast::<Inner<T>>().as_ptr();
        // SAFETY: By the safety requirements the allocation exists.
        let head = unsafe { Opaque::cast_into(&raw const (*inner).head) };
        // SAFETY: The head is ours, and was not used before. C's `kvfree_rcu_head` is no larger
        // than it. The allocation is not used after a grace period.
        unsafe { bindings::kvfree_call_rcu(head.cast(), inner.cast()) };
    }
}
