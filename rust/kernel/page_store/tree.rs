// SPDX-License-Identifier: GPL-2.0

//! The XArray that owns the pages of a store.
//!
//! Whoever looks for a page is inside an RCU read section, a [`Walk`], and pages are freed after a
//! grace period: a page that was found stays allocated until the walk ends, whatever happens
//! meanwhile.
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)

use super::page::NewPage;
use crate::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    },
};
use core::{
    marker::PhantomData,
    mem::{
        self,
        MaybeUninit, //
    },
    ptr::NonNull, //
};

/// The pages, by their number.
///
/// # Invariants
///
/// - `xa` is an initialised XArray whose entries are order-0 pages, each owned by it alone: they
///   are in no request, and no process maps them.
/// - A page leaves `xa` only to be freed after a grace period, or when the tree is dropped.
/// - `barrier` was set before the first page was given to RCU.
#[pin_data(PinnedDrop)]
pub(super) struct Tree {
    #[pin]
    xa: Opaque<bindings::xarray>,
    barrier: Atomic<bool>,
}

// SAFETY: Pages and XArrays belong to no thread.
unsafe impl Send for Tree {}

// SAFETY: The XArray is changed under its own lock and read under RCU; the rest is an atomic.
unsafe impl Sync for Tree {}

impl Tree {
    /// An empty tree.
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: There are no pages yet.
        pin_init!(Self {
            // SAFETY: The slot is ours to be initialised.
            xa <- Opaque::ffi_init(|xa| unsafe { bindings::xa_init_flags(xa, 0) }),
            barrier: Atomic::new(false),
        })
    }

    /// Begins to look for pages.
    #[inline]
    pub(super) fn walk(&self) -> Walk<'_> {
        let section = rcu::read_lock();
        let mut at = MaybeUninit::uninit();
        // SAFETY: The state is ours to be initialised, the array is valid by the type invariants.
        unsafe { bindings::page_store_walk(at.as_mut_ptr(), self.xa.get()) };
        // INVARIANT: The state knows no node yet, and the read section has begun.
        Walk {
            // SAFETY: It was just initialised.
            at: unsafe { at.assume_init() },
            _section: section,
            _tree: PhantomData,
        }
    }

    /// Makes `page` page `index`, unless there is one already; returns whether it did.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory for the array, even after waiting for some if `may_sleep`.
    pub(super) fn insert(&self, index: usize, page: NewPage, may_sleep: bool) -> Result<bool> {
        let (xa, raw) = (self.xa.get(), page.as_ptr());
        // SAFETY: The array is valid by the type invariants, the page is ours.
        let old = unsafe { bindings::page_store_insert(xa, index, raw, may_sleep) };
        if old.is_null() {
            // INVARIANT: The array owns the page now.
            mem::forget(page);
            return Ok(true);
        }
        // SAFETY: `old` is what the array returned.
        match unsafe { bindings::xa_err(old) } {
            0 => Ok(false),
            error => Err(Error::from_errno(error)),
        }
    }

    /// The number of the first page from `index` to `last`.
    pub(super) fn next(&self, mut index: usize, last: usize) -> Option<usize> {
        // SAFETY: The array is valid by the type invariants.
        let page =
            unsafe { bindings::xa_find(self.xa.get(), &mut index, last, bindings::XA_PRESENT) };
        (!page.is_null()).then_some(index)
    }

    /// Takes the lock that every change of the tree needs, to take out pages.
    pub(super) fn change(&self) -> Change<'_> {
        // INVARIANT: Set before any page can be erased.
        self.barrier.store(true, Relaxed);
        // SAFETY: The array is valid by the type invariants.
        unsafe { bindings::xa_lock(self.xa.get()) };
        // INVARIANT: The lock was just taken.
        Change {
            tree: self,
            _cpu: NotThreadSafe,
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Tree {
    fn drop(self: Pin<&mut Self>) {
        let mut index = 0;
        while let Some(found) = self.next(index, usize::MAX) {
            // SAFETY: The array is valid, and nobody else can reach it any more.
            let page = unsafe { bindings::xa_load(self.xa.get(), found) };
            // SAFETY: The array owned the page, and is destroyed without another look at it.
            unsafe { bindings::page_store_free(page.cast()) };
            // The number of a page is far from the largest number there is.
            index = found.wrapping_add(1);
            if index % 1024 == 0 {
                // SAFETY: Stores are dropped where sleeping is allowed.
                unsafe { bindings::page_store_resched() };
            }
        }
        // SAFETY: The array is valid and not used again.
        unsafe { bindings::xa_destroy(self.xa.get()) };
        if self.barrier.load(Relaxed) {
            // SAFETY: Stores are dropped where sleeping is allowed.
            unsafe { bindings::rcu_barrier() };
        }
    }
}

/// A look at a tree, during which no page that was found is freed.
///
/// # Invariants
///
/// `at` is the state of a walk over the array of a tree that lives during `'a`. The walk began in
/// the RCU read section that lasts as long as this exists.
pub(super) struct Walk<'a> {
    at: bindings::xa_state,
    _section: rcu::Guard,
    _tree: PhantomData<&'a Tree>,
}

impl Walk<'_> {
    /// Looks for page `index`, which is cheap right after a look for its predecessor.
    #[inline]
    pub(super) fn find(&mut self, index: usize) -> Option<NonNull<bindings::page>> {
        // SAFETY: By the type invariants the state is valid and the read section lasts.
        NonNull::new(unsafe { bindings::page_store_find(&mut self.at, index) })
    }

    /// As [`Self::find`], where that is not worth a copy of its code.
    #[inline(never)]
    pub(super) fn find_far(&mut self, index: usize) -> Option<NonNull<bindings::page>> {
        self.find(index)
    }
}

/// The right to take pages out of a tree.
///
/// # Invariants
///
/// The lock of `tree.xa` is held, and `tree.barrier` set.
pub(super) struct Change<'a> {
    tree: &'a Tree,
    _cpu: NotThreadSafe,
}

impl Change<'_> {
    /// Takes out page `index`, if there is one. Walkers may use it until they end.
    pub(super) fn erase(&mut self, index: usize) {
        /// Frees a page.
        ///
        /// # Safety
        ///
        /// `head` must be that of a page which nobody uses any more.
        unsafe extern "C" fn free(head: *mut bindings::callback_head) {
            // SAFETY: `head` is a member of a page.
            let page = unsafe {
                crate::container_of!(head, bindings::page, __bindgen_anon_1.callback_head)
            };
            // SAFETY: Nobody uses the page any more.
            unsafe { bindings::page_store_free(page) };
        }

        // SAFETY: By the type invariants the array is valid and its lock held.
        let page = unsafe { bindings::__xa_erase(self.tree.xa.get(), index) };
        if let Some(page) = NonNull::new(page.cast::<bindings::page>()) {
            // SAFETY: The array owned the page. Walkers still use `page->private`, which is not in
            // the same place as this member; after a grace period no walker is left. `barrier` is
            // set, so `free` stays until it has been called.
            unsafe {
                let head = &raw mut (*page.as_ptr()).__bindgen_anon_1.callback_head;
                bindings::call_rcu(head, Some(free));
            }
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::xa_unlock(self.tree.xa.get()) };
    }
}
