// SPDX-License-Identifier: GPL-2.0

//! The XArray that owns the leaves of a tree.
//!
//! Whoever looks for a leaf is inside an RCU read section, a [`Walk`]; pages and leaves are freed
//! after a grace period. So what was found stays allocated until the walk ends, whatever happens
//! meanwhile.
//!
//! Leaf `n` has index `n + FIRST`. So there is none in the node of index 0, the only node that an
//! XArray does without where it can, and a leaf always has a node above it.
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)

use super::{
    leaf::Leaf,
    page::Page,
    part::Part,
    range::{
        Run,
        LEAF_PAGES, //
    },
};
use crate::{
    bindings,
    prelude::*,
    sync::rcu,
    types::Opaque, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// The index of leaf 0: as many as a node has slots, at most.
const FIRST: usize = 64;

/// The index of the leaf that page `page` belongs into.
#[inline]
fn index(page: usize) -> usize {
    (page / LEAF_PAGES).wrapping_add(FIRST)
}

/// The leaves, by the numbers of their pages.
///
/// # Invariants
///
/// - `xa` is an initialised XArray whose entries are leaves, each owned by it alone; leaf `n` has
///   index `n + FIRST`.
/// - A leaf leaves `xa` only to be freed after a grace period, or by [`Self::free`].
#[pin_data]
pub(super) struct Leaves {
    #[pin]
    xa: Opaque<bindings::xarray>,
}

// SAFETY: Pages and XArrays belong to no thread.
unsafe impl Send for Leaves {}

// SAFETY: The XArray is changed under its own lock and read under RCU, leaves have locks.
unsafe impl Sync for Leaves {}

impl Leaves {
    /// No leaves.
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: There are no leaves yet.
        pin_init!(Self {
            // SAFETY: The slot is ours to be initialised.
            xa <- Opaque::ffi_init(|xa| unsafe { bindings::xa_init_flags(xa, 0) }),
        })
    }

    /// Begins to look at page `page` and its neighbours in the same leaf.
    #[inline]
    pub(super) fn walk(&self, page: usize) -> Walk<'_> {
        let section = rcu::read_lock();
        // SAFETY: The array is valid by the type invariants, and the read section has begun.
        let leaf = unsafe { bindings::page_store_find(self.xa.get(), index(page)) };
        // INVARIANT: The read section keeps the leaf allocated, even if it leaves the array.
        Walk {
            leaf: NonNull::new(leaf.cast()),
            _section: section,
            _leaves: PhantomData,
        }
    }

    /// Takes the leaf that page `page` belongs into, or frees it if there is one already.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, even after waiting for some if `may_sleep`.
    ///
    /// # Safety
    ///
    /// The leaf must belong to the caller, who gives it away, and must not have been seen
    /// elsewhere.
    pub(super) unsafe fn insert(&self, page: usize, new: NonNull<Leaf>, may_sleep: bool) -> Result {
        let (xa, raw) = (self.xa.get(), new.as_ptr().cast());
        // SAFETY: The array is valid by the type invariants, and the leaf is ours.
        let stored = unsafe { bindings::page_store_insert(xa, index(page), raw, may_sleep) };
        if stored <= 0 {
            // SAFETY: It was not seen elsewhere.
            unsafe { Leaf::free(new) };
        }
        // INVARIANT: The array owns the leaf now, if it was stored.
        if stored < 0 {
            return Err(Error::from_errno(stored));
        }
        Ok(())
    }

    /// Takes out the leaf that page `page` belongs into, which is the caller's then.
    ///
    /// # Safety
    ///
    /// The caller must not free the leaf before a grace period has passed.
    #[inline]
    pub(super) unsafe fn erase(&self, page: usize) {
        // INVARIANT: It is freed after a grace period.
        // SAFETY: The array is valid by the type invariants.
        unsafe { bindings::xa_erase(self.xa.get(), index(page)) };
    }

    /// The number that the first page has, or would have, of the first leaf with a page from `page`
    /// on, if there is one.
    pub(super) fn next(&self, page: usize) -> Option<usize> {
        let mut found = index(page);
        self.find(&mut found)?;
        Some((found - FIRST) * LEAF_PAGES)
    }

    /// The first leaf from this index on, which becomes its own.
    fn find(&self, index: &mut usize) -> Option<NonNull<Leaf>> {
        // SAFETY: The array is valid by the type invariants.
        let leaf =
            unsafe { bindings::xa_find(self.xa.get(), index, usize::MAX, bindings::XA_PRESENT) };
        NonNull::new(leaf.cast())
    }

    /// Frees the leaves with their pages.
    ///
    /// # Safety
    ///
    /// `self` must not be used any more. The caller must be allowed to sleep.
    pub(super) unsafe fn free(&self) {
        let mut index = 0;
        while let Some(leaf) = self.find(&mut index) {
            // SAFETY: The array owned the leaf, and is destroyed without another look at it. By
            // the safety requirement nothing else uses it.
            unsafe { Leaf::free(leaf) };
            index += 1;
            // SAFETY: The caller may sleep.
            unsafe { bindings::page_store_resched() };
        }
        // SAFETY: The array is valid and not used again.
        unsafe { bindings::xa_destroy(self.xa.get()) };
    }
}

/// A look at the pages of one leaf, during which none that was found is freed.
///
/// # Invariants
///
/// `leaf`, if there is one, was found among leaves that live during `'a`, in the RCU read section
/// that lasts as long as this exists.
pub(super) struct Walk<'a> {
    leaf: Option<NonNull<Leaf>>,
    _section: rcu::Guard,
    _leaves: PhantomData<&'a Leaves>,
}

impl Walk<'_> {
    /// The leaf, which stays allocated until the walk ends.
    #[inline]
    pub(super) fn leaf(&self) -> Option<NonNull<Leaf>> {
        self.leaf
    }

    /// The leaf, to look at.
    #[inline]
    fn as_ref(&self) -> Option<&Leaf> {
        let leaf = self.leaf?;
        // SAFETY: By the type invariants the leaf is allocated while this exists.
        Some(unsafe { leaf.as_ref() })
    }

    /// How many pages the leaf has now.
    pub(super) fn count(&self) -> usize {
        self.as_ref().map_or(0, Leaf::count)
    }

    /// Whether there is page `page`, which must be one of those that the walk was begun for.
    pub(super) fn has(&self, page: usize) -> bool {
        self.as_ref().is_some_and(|leaf| {
            // SAFETY: By the type invariants, the read section lasts.
            unsafe { leaf.page(page) }.is_some()
        })
    }

    /// Finds the page of `part`, which must be one of those that the walk was begun for.
    #[inline]
    pub(super) fn page(&self, part: Part) -> Option<Page<'_>> {
        let leaf = self.as_ref()?;
        // SAFETY: By the type invariants, the read section lasts.
        unsafe { leaf.page(part.page()) }
    }

    /// Finds the pages of a run, which must be among those that the walk was begun for; [`None`] if
    /// there is not one of them.
    #[inline]
    pub(super) fn pages(&self, run: Run) -> Option<impl Iterator<Item = Option<Page<'_>>>> {
        let leaf = self.as_ref()?;
        // SAFETY: By the type invariants, the read section lasts.
        Some(unsafe { leaf.pages(run) })
    }
}
