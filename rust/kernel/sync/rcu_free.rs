// SPDX-License-Identifier: GPL-2.0

//! Freeing of what RCU readers may still use.
//!
//! A container such as an [`XArray`] or an [`RcuPtr`] owns values that readers find without a lock.
//! A value that was removed is a [`Removed`]. Readers that have found it before may use it until
//! the end of their read-side critical sections, so it is freed after a grace period.
//!
//! No code of a driver runs in an RCU callback. The callbacks are functions of the kernel crate,
//! and what they free has no destructor of the driver's. So a driver need not wait for a grace
//! period when it is unloaded.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)
//!
//! [`RcuPtr`]: super::rcu_ptr::RcuPtr
//! [`XArray`]: crate::xarray::XArray

// The code of an external module can be unloaded, that of the kernel crate cannot.
#[cfg(MODULE)]
mod callbacks;

#[cfg(MODULE)]
pub(crate) use callbacks::*;

use crate::{
    prelude::*,
    types::ForeignOwnable, //
};
use core::{
    marker::PhantomData,
    mem,
    ptr::NonNull, //
};

/// Owners of memory that can be freed after a grace period.
///
/// # Safety
///
/// - What [`ForeignOwnable::borrow`] returns for a pointer may be used by any number of threads
///   until [`RcuFree::free_later`] is called for that pointer, and by readers until a grace period
///   has passed since the batch was dropped.
/// - No code that a driver provides runs after the grace period.
pub unsafe trait RcuFree: ForeignOwnable + Send + Sync + 'static {
    /// Pointers that are freed together after one grace period, which starts when this is dropped.
    type Batch: Default;

    /// Whether a callback of the kernel crate frees the memory.
    const HAS_CALLBACK: bool;

    /// Adds the memory at `ptr` to a batch.
    ///
    /// # Safety
    ///
    /// `ptr` must have been returned by [`ForeignOwnable::into_foreign`], and must not be used any
    /// more but by RCU readers that have it already. The kernel crate must stay in memory until
    /// the callbacks that were queued have run, if [`Self::HAS_CALLBACK`].
    unsafe fn free_later(ptr: NonNull<c_void>, batch: &mut Self::Batch);
}

/// A value that was removed from a container, and that is freed after a grace period.
///
/// # Invariants
///
/// `ptr` was returned by `T::into_foreign`, and no container has it any more. The container, which
/// keeps the callbacks in memory, exists during `'a`.
#[must_use = "it is freed after a grace period, which starts when it is dropped"]
pub struct Removed<'a, T: RcuFree> {
    ptr: NonNull<c_void>,
    _container: PhantomData<(&'a (), T)>,
}

// SAFETY: The value may be freed by any thread, since `T` is `Send`.
unsafe impl<T: RcuFree> Send for Removed<'_, T> {}

// SAFETY: `T` is `Sync`.
unsafe impl<T: RcuFree> Sync for Removed<'_, T> {}

impl<T: RcuFree> Removed<'_, T> {
    /// # Safety
    ///
    /// `ptr` must have been returned by `T::into_foreign`, and removed from a container that exists
    /// during the lifetime of the result, and that has a [`Callbacks`] for `T`.
    #[inline]
    pub(crate) unsafe fn new(ptr: NonNull<c_void>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            ptr,
            _container: PhantomData,
        }
    }

    /// Returns the value, which others may be using.
    #[inline]
    pub fn borrow(&self) -> T::Borrowed<'_> {
        // SAFETY: By the type invariants the value is not freed before `self` is dropped.
        unsafe { T::borrow(self.ptr.as_ptr()) }
    }
}

impl<T: RcuFree> Drop for Removed<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants nothing but readers that have found it uses the value, and
        // the container keeps the callbacks in memory.
        unsafe { T::free_later(self.ptr, &mut T::Batch::default()) };
    }
}

/// Values that were removed, to be freed together after one grace period.
///
/// # Examples
///
/// ```
/// use kernel::{
///     static_lock_class,
///     sync::{rcu_box::RcuBox, rcu_free::RcuBatch},
///     xarray::{Rcu, XArray}, //
/// };
///
/// let squares = XArray::<RcuBox<_>, Rcu>::new(c"squares", static_lock_class!());
/// let squares = KBox::pin_init(squares, GFP_KERNEL)?;
/// for i in 0..100 {
///     squares.insert(i, RcuBox::new(i * i, GFP_KERNEL)?, GFP_KERNEL)?;
/// }
///
/// let mut batch = RcuBatch::new();
/// let mut guard = squares.lock();
/// for i in 10..20 {
///     batch.extend(guard.remove(i));
/// }
/// // The lock need not be held when the batch is freed.
/// drop(guard);
/// drop(batch);
/// # Ok::<(), Error>(())
/// ```
pub struct RcuBatch<'a, T: RcuFree> {
    batch: T::Batch,
    _container: PhantomData<&'a ()>,
}

impl<'a, T: RcuFree> RcuBatch<'a, T> {
    /// Creates an empty batch.
    #[inline]
    pub fn new() -> Self {
        Self {
            batch: T::Batch::default(),
            _container: PhantomData,
        }
    }

    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: Removed<'a, T>) {
        let ptr = value.ptr;
        mem::forget(value);
        // SAFETY: By the invariants of `Removed`. The batch is dropped before the container is,
        // which `'a` sees to.
        unsafe { T::free_later(ptr, &mut self.batch) };
    }
}

impl<T: RcuFree> Drop for RcuBatch<'_, T> {
    // The fields, whose types know nothing of `'a`, are dropped. Without this function, that could
    // happen after the end of `'a`.
    #[inline]
    fn drop(&mut self) {}
}

impl<T: RcuFree> Default for RcuBatch<'_, T> {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, T: RcuFree> Extend<Removed<'a, T>> for RcuBatch<'a, T> {
    #[inline]
    fn extend<I: IntoIterator<Item = Removed<'a, T>>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

/// Keeps the callbacks of RCU in memory. The kernel crate is never unloaded, so this is nothing.
#[cfg(not(MODULE))]
pub(crate) struct Callbacks;

#[cfg(not(MODULE))]
impl Callbacks {
    /// Keeps the callbacks in memory if a container has some.
    #[inline]
    pub(crate) fn new(_has_callback: bool) -> Result<Self> {
        Ok(Self)
    }

    /// Must be called after a callback was queued.
    #[inline]
    pub(crate) fn queued() {}
}
