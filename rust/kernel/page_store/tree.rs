// SPDX-License-Identifier: GPL-2.0

//! The XArray that owns the pages of a store.
//!
//! Whoever looks for pages is inside an RCU read section, a [`Walk`], and pages are freed after a
//! grace period: a page that was found stays allocated until the walk ends, whatever happens
//! meanwhile. A walk is for the pages that hang from one node, and finds this node once.
//!
//! Page `n` has index `n + NODE_PAGES`. So there is no page in the node of index 0, the only one
//! that an XArray does without where it can, and a page always has a node.
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)

use super::{
    locks::Locks,
    page::{
        NewPage,
        Page, //
    },
    range::{
        Part,
        NODE_PAGES, //
    },
};
use crate::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        lock::spinlock::SpinLockGuard,
        rcu,
        LockClassKey, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    },
};
use core::{
    marker::PhantomData,
    mem,
    ptr::NonNull, //
};

/// The pages, by their number.
///
/// # Invariants
///
/// - `xa` is an initialised XArray whose entries are order-0 pages, each owned by it alone: they
///   are in no request, and no process maps them. Page `n` has index `n + NODE_PAGES`.
/// - A page leaves `xa` only to be freed after a grace period, or when the tree is dropped.
/// - `count` is the number of pages, changed under the lock of `xa`.
/// - `barrier` was set before the first page was given to RCU.
#[pin_data(PinnedDrop)]
pub(super) struct Tree {
    #[pin]
    xa: Opaque<bindings::xarray>,
    count: Atomic<usize>,
    barrier: Atomic<bool>,
    #[pin]
    locks: Locks,
}

// SAFETY: Pages and XArrays belong to no thread.
unsafe impl Send for Tree {}

// SAFETY: The XArray is changed under its own lock and read under RCU; the rest are atomics, locks.
unsafe impl Sync for Tree {}

impl Tree {
    /// An empty tree.
    pub(super) fn new(class: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        // INVARIANT: There are no pages yet.
        pin_init!(Self {
            // SAFETY: The slot is ours to be initialised.
            xa <- Opaque::ffi_init(|xa| unsafe { bindings::xa_init_flags(xa, 0) }),
            count: Atomic::new(0),
            barrier: Atomic::new(false),
            locks <- Locks::new(class),
        })
    }

    /// The number of pages.
    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Begins to look at page `page` and its neighbours under the same node.
    #[inline]
    pub(super) fn walk(&self, page: usize) -> Walk<'_> {
        let section = rcu::read_lock();
        // SAFETY: The array is valid by the type invariants, and the read section has begun.
        let node = unsafe { bindings::page_store_node(self.xa.get(), index(page)) };
        // INVARIANT: The read section keeps the node allocated, even if it leaves the array.
        Walk {
            node,
            _section: section,
            _tree: PhantomData,
        }
    }

    /// Waits until nobody else changes page `page` and its neighbours under the same node.
    #[inline]
    pub(super) fn hold(&self, page: usize) -> Held<'_> {
        let lock = self.locks.wait(page);
        Held {
            walk: self.walk(page),
            tree: self,
            _lock: lock,
        }
    }

    /// Makes `new` page `page`, unless there is one already; returns whether it did.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory for the array, even after waiting for some if `may_sleep`.
    pub(super) fn insert(&self, page: usize, new: NewPage, may_sleep: bool) -> Result<bool> {
        let (xa, count) = (self.xa.get(), self.count.as_ptr());
        // SAFETY: The array is valid by the type invariants, the page is ours, and the count is
        // changed under the lock of the array.
        let stored =
            unsafe { bindings::page_store_insert(xa, index(page), new.as_ptr(), count, may_sleep) };
        if stored < 0 {
            return Err(Error::from_errno(stored));
        }
        if stored > 0 {
            // INVARIANT: The array owns the page now, and it was counted.
            mem::forget(new);
        }
        Ok(stored > 0)
    }

    /// The number of the first page from `page` on, if there is one.
    pub(super) fn next(&self, page: usize) -> Option<usize> {
        let mut found = index(page);
        // SAFETY: The array is valid by the type invariants.
        let raw = unsafe {
            bindings::xa_find(self.xa.get(), &mut found, usize::MAX, bindings::XA_PRESENT)
        };
        (!raw.is_null()).then(|| found - NODE_PAGES)
    }
}

/// The index in the XArray of page `page`.
#[inline]
fn index(page: usize) -> usize {
    // Numbers of pages that belong to bytes are not that large.
    page.wrapping_add(NODE_PAGES)
}

#[pinned_drop]
impl PinnedDrop for Tree {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The array is valid, owns its pages, and is not used again. Stores are dropped
        // where sleeping is allowed.
        unsafe { bindings::page_store_destroy(self.xa.get()) };
        if self.barrier.load(Relaxed) {
            // SAFETY: Stores are dropped where sleeping is allowed.
            unsafe { bindings::rcu_barrier() };
        }
    }
}

/// A look at the pages that hang from one node, during which no page that was found is freed.
///
/// # Invariants
///
/// `node` is null or a node of the lowest level of a tree that lives during `'a`. It was found in
/// the RCU read section that lasts as long as this exists.
pub(super) struct Walk<'a> {
    node: *mut bindings::xa_node,
    _section: rcu::Guard,
    _tree: PhantomData<&'a Tree>,
}

impl Walk<'_> {
    /// Finds the page of `part`, which must be one of those that the walk was begun for.
    #[inline]
    pub(super) fn page(&self, part: Part) -> Option<Page<'_>> {
        // SAFETY: By the type invariants the node is allocated if it is not null.
        let raw = unsafe { bindings::page_store_slot(self.node, part.page() % NODE_PAGES) };
        // SAFETY: It is a page of the tree, or was one since the read section began, and is not
        // freed before this ends.
        NonNull::new(raw).map(|raw| unsafe { Page::from_raw(raw) })
    }
}

/// The right to change the pages that hang from one node.
pub(super) struct Held<'a> {
    walk: Walk<'a>,
    tree: &'a Tree,
    // Given back after the walk has ended.
    _lock: SpinLockGuard<'a, ()>,
}

impl Held<'_> {
    /// Finds the page of `part`, as [`Walk::page`] does.
    #[inline]
    pub(super) fn page(&self, part: Part) -> Option<Page<'_>> {
        self.walk.page(part)
    }

    /// Adds a page without waiting for memory; returns whether it did.
    #[inline]
    pub(super) fn insert(&self, page: usize, new: NewPage) -> bool {
        self.tree.insert(page, new, false) == Ok(true)
    }

    /// Takes the lock that every change of the tree needs, to take out pages.
    pub(super) fn change(&self) -> Change<'_> {
        // INVARIANT: Set before any page can be erased.
        self.tree.barrier.store(true, Relaxed);
        // SAFETY: The array is valid by the type invariants.
        unsafe { bindings::xa_lock(self.tree.xa.get()) };
        // INVARIANT: The lock was just taken.
        Change {
            tree: self.tree,
            _cpu: NotThreadSafe,
        }
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
    /// Takes out page `page`, if there is one. Walkers may use it until they end.
    pub(super) fn erase(&mut self, page: usize) {
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
        let raw = unsafe { bindings::__xa_erase(self.tree.xa.get(), index(page)) };
        if let Some(raw) = NonNull::new(raw.cast::<bindings::page>()) {
            // INVARIANT: The lock is held.
            let count = &self.tree.count;
            count.store(count.load(Relaxed).wrapping_sub(1), Relaxed);
            // SAFETY: The array owned the page. Walkers still use `page->private`, which is not in
            // the same place as this member; after a grace period no walker is left. `barrier` is
            // set, so `free` stays until it has been called.
            unsafe {
                let head = &raw mut (*raw.as_ptr()).__bindgen_anon_1.callback_head;
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
