// SPDX-License-Identifier: GPL-2.0

//! A leaf of a tree: some neighbouring pages with the lock for changing them.

use super::{
    chain::Chain,
    page::{
        NewPage,
        Page, //
    },
    range::{
        Run,
        LEAF_PAGES, //
    },
};
use crate::{
    bindings, c_str,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        LockClassKey,
        SpinLock, //
    },
    types::Opaque,
};
use core::{
    array, mem,
    ptr::{
        self,
        NonNull, //
    },
};

/// What changes under the lock of a leaf.
pub(super) struct Inside {
    /// Whether the leaf was taken out of its tree.
    pub(super) gone: bool,
    /// Pages that were taken out, and that RCU is yet to get.
    pub(super) removed: Chain,
}

/// A row of pages, some of which may be missing.
///
/// # Invariants
///
/// - What is in `pages` is null or an order-0 page that belongs to the leaf alone, until it is
///   taken out. It is changed under the lock.
/// - `head` belongs to the call that takes the leaf out of its tree.
#[pin_data]
#[repr(C, align(64))]
pub(super) struct Leaf {
    #[pin]
    pub(super) inside: SpinLock<Inside>,
    #[pin]
    head: Opaque<bindings::callback_head>,
    /// The number of pages. It is changed under the lock.
    count: Atomic<usize>,
    /// On cache lines that nobody writes to while no page comes or goes.
    pages: Row,
}

#[repr(align(64))]
struct Row([Atomic<*mut bindings::page>; LEAF_PAGES]);

impl Leaf {
    /// Allocates a leaf without pages.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, even after waiting for some if `may_sleep`.
    pub(super) fn new(class: Pin<&'static LockClassKey>, may_sleep: bool) -> Result<NonNull<Self>> {
        // INVARIANT: There are no pages.
        let init = pin_init!(Self {
            inside <- SpinLock::new(
                Inside {
                    gone: false,
                    removed: Chain::new(),
                },
                c_str!("PageStore"),
                class,
            ),
            head <- Opaque::uninit(),
            count: Atomic::new(0),
            pages: Row(array::from_fn(|_| Atomic::new(ptr::null_mut()))),
        });
        // SAFETY: Allocating has no preconditions.
        let new = unsafe { bindings::page_store_alloc_leaf(mem::size_of::<Self>(), may_sleep) };
        let new = NonNull::new(new.cast::<Self>()).ok_or(ENOMEM)?;
        // SAFETY: There is as much memory, aligned to at least the largest power of two that
        // divides the size; it stays where it is.
        unsafe { pin_init::raw_init(new.as_ptr(), init) };
        Ok(new)
    }

    /// The page with this number, which belongs into this leaf; [`None`] if there is none.
    ///
    /// # Safety
    ///
    /// During `'a`, the caller is in an RCU read section, or holds the lock and takes out no page.
    #[inline]
    pub(super) unsafe fn page<'a>(&self, page: usize) -> Option<Page<'a>> {
        let raw = NonNull::new(self.pages.0[page % LEAF_PAGES].load(Acquire))?;
        // SAFETY: By the type invariants it is a page, and not freed before the read section ends.
        Some(unsafe { Page::from_raw(raw) })
    }

    /// The pages of a run, which belong into this leaf; [`None`] for each that there is not.
    ///
    /// # Safety
    ///
    /// As for [`Self::page`], as long as `self` is borrowed.
    #[inline]
    pub(super) unsafe fn pages(&self, run: Run) -> impl Iterator<Item = Option<Page<'_>>> {
        let row = &self.pages.0[run.page() % LEAF_PAGES..][..run.count()];
        row.iter().map(|slot| {
            let raw = NonNull::new(slot.load(Acquire))?;
            // SAFETY: By the type invariants it is a page, and not freed before the read section
            // ends.
            Some(unsafe { Page::from_raw(raw) })
        })
    }

    /// How many pages there are now.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Makes `new` the page with this number, of which there was none.
    #[inline]
    pub(super) fn insert(&self, _lock: &mut Inside, page: usize, new: NewPage) {
        self.count.store(self.count() + 1, Relaxed);
        // INVARIANT: The page belongs to the leaf now. Its bytes are seen before itself.
        self.pages.0[page % LEAF_PAGES].store(new.into_raw(), Release);
    }

    /// Takes out the page with this number, if there is one; it is in `removed` then. A CPU that
    /// has found it may go on to use it until the end of its RCU read section.
    #[inline]
    pub(super) fn take(&self, inside: &mut Inside, page: usize) -> bool {
        let slot = &self.pages.0[page % LEAF_PAGES];
        let Some(raw) = NonNull::new(slot.load(Relaxed)) else {
            return false;
        };
        self.count.store(self.count() - 1, Relaxed);
        slot.store(ptr::null_mut(), Relaxed);
        // SAFETY: By the type invariants the page belonged to the leaf, which does not have it now.
        unsafe { inside.removed.push(raw) };
        true
    }

    /// Frees a leaf without pages after a grace period.
    ///
    /// # Safety
    ///
    /// The caller took the leaf out of its tree, and so owns it; only RCU read sections that have
    /// found it may still use it.
    pub(super) unsafe fn free_later(leaf: NonNull<Self>) {
        // As C's `kvfree_rcu()` checks: in large allocations, C rounds the address of `head` down
        // to a page.
        const_assert!(mem::offset_of!(Leaf, head) < 4096);
        // SAFETY: The leaf is allocated, since it is ours.
        let head = unsafe { leaf.as_ref() }.head.get();
        // SAFETY: By the type invariants `head` is ours as well. C's `kvfree_rcu_head` is no larger
        // than it, from whose address C finds the start of the leaf. By the safety requirement the
        // leaf is not used after a grace period.
        unsafe { bindings::kvfree_call_rcu(head.cast(), leaf.as_ptr().cast()) };
    }

    /// Frees a leaf with its pages.
    ///
    /// # Safety
    ///
    /// The leaf is the caller's. Neither it nor its pages must be used any more.
    pub(super) unsafe fn free(leaf: NonNull<Self>) {
        // SAFETY: The leaf is allocated, and ours alone.
        let this = unsafe { leaf.as_ref() };
        for slot in &this.pages.0 {
            if let Some(page) = NonNull::new(slot.load(Relaxed)) {
                // SAFETY: By the type invariants the page belongs to the leaf.
                unsafe { bindings::page_store_free(page.as_ptr()) };
            }
        }
        let removed = this.inside.lock().removed.take();
        // SAFETY: They are not used any more.
        unsafe { removed.free() };
        // SAFETY: It was allocated by `new`, and there is nothing in it to be dropped.
        unsafe { bindings::kfree(leaf.as_ptr().cast()) };
    }
}
