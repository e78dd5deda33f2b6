// SPDX-License-Identifier: GPL-2.0

//! The pages of a store, by their number.
//!
//! Whoever looks for pages does so in a [`Walk`]; whoever changes them has a [`Held`], too.

use super::{
    context,
    leaf::{
        Inside,
        Leaf, //
    },
    leaves::{
        Leaves,
        Walk, //
    },
    page::{
        NewPage,
        Page, //
    },
    part::Part,
    range::{
        self,
        Run, //
    },
};
use crate::{
    late_drop::LateDrop,
    module_pin::ModulePin,
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
};
use core::ptr::NonNull;

/// The pages, by their number.
///
/// # Invariants
///
/// - `barrier` was set before the first page was given to RCU.
/// - Only a borrower of the tree, [`Held::prune`], queues a callback of RCU; no callback queues
///   another. So `rcu_barrier()` waits for the last one if the tree is not borrowed any more.
#[pin_data(PinnedDrop)]
pub(super) struct Tree {
    #[pin]
    leaves: Leaves,
    class: Pin<&'static LockClassKey>,
    /// The number of pages, where it is asked for often. All who add pages write to it.
    count: Option<Atomic<usize>>,
    barrier: Atomic<bool>,
}

impl Tree {
    /// An empty tree, whose locks are of this class, and which knows how many pages it has if
    /// `counts`, else has to count them.
    ///
    /// It can be dropped anywhere. Even if it is leaked, the code that frees its pages stays.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`]; [`EAGAIN`] while the parameters of the module are being parsed; [`ENOTSUPP`] in
    /// a module for a kernel without sysfs.
    pub(super) fn new(class: Pin<&'static LockClassKey>, counts: bool) -> Result<LateDrop<Self>> {
        let pin = ModulePin::of_this_code()?;
        LateDrop::new(pin, Self::init(class, counts), context::gfp())
    }

    fn init(class: Pin<&'static LockClassKey>, counts: bool) -> impl PinInit<Self, Error> {
        // INVARIANT: There are no leaves yet.
        try_pin_init!(Self {
            leaves <- Leaves::new(),
            class,
            count: counts.then(|| Atomic::new(0)),
            barrier: Atomic::new(false),
        }? Error)
    }

    /// The number of pages.
    pub(super) fn count(&self) -> usize {
        if let Some(count) = &self.count {
            return count.load(Relaxed);
        }
        let (mut next, mut count) = (Some(0), 0);
        while let Some(first) = next.and_then(|page| self.next_leaf(page)) {
            // Without the lock: an interrupt handler may have interrupted its holder.
            count += self.walk(first).count();
            next = range::next_leaf(first);
        }
        count
    }

    /// Begins to look at page `page` and its neighbours in the same leaf.
    #[inline]
    pub(super) fn walk(&self, page: usize) -> Walk<'_> {
        self.leaves.walk(page)
    }

    /// Waits until nobody else changes page `page` and its neighbours in the same leaf; [`None`]
    /// if there is no such leaf, hence no such page.
    #[inline(always)]
    pub(super) fn hold(&self, page: usize) -> Option<Held<'_>> {
        loop {
            let held = self.try_hold(page);
            // A leaf that was gone left the tree before its lock was given back, so another look
            // finds another leaf or none.
            if held.is_some() || self.walk(page).leaf().is_none() {
                return held;
            }
        }
    }

    /// As [`Self::hold`], but [`None`] also if the leaf was just on its way out of the tree.
    #[inline(always)]
    pub(super) fn try_hold(&self, page: usize) -> Option<Held<'_>> {
        let walk = self.walk(page);
        let leaf = walk.leaf()?;
        // SAFETY: The walk, which the guard does not outlive, keeps the leaf allocated.
        let inside = unsafe { &(*leaf.as_ptr()).inside }.lock();
        if inside.gone {
            return None;
        }
        // INVARIANT: The lock was just taken, and the leaf is in the tree.
        Some(Held {
            inside,
            leaf,
            page,
            _walk: walk,
            tree: self,
        })
    }

    /// Adds the leaf that page `page` belongs into, unless there is one already.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, even after waiting for some if `may_sleep`.
    #[cold]
    pub(super) fn add_leaf(&self, page: usize, may_sleep: bool) -> Result {
        let new = Leaf::new(self.class, may_sleep)?;
        // SAFETY: The leaf is ours, and was not seen elsewhere.
        unsafe { self.leaves.insert(page, new, may_sleep) }
    }

    /// The number that the first page has, or would have, of the first leaf with a page from `page`
    /// on, if there is one.
    pub(super) fn next_leaf(&self, page: usize) -> Option<usize> {
        self.leaves.next(page)
    }

    /// The number of the first page from `page` on, if there is one.
    pub(super) fn next(&self, page: usize) -> Option<usize> {
        let mut page = page;
        loop {
            page = self.next_leaf(page)?.max(page);
            let walk = self.walk(page);
            if let Some(found) = range::of_leaf(page).find(|found| walk.has(*found)) {
                return Some(found);
            }
            page = range::next_leaf(page)?;
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Tree {
    fn drop(self: Pin<&mut Self>) {
        if self.barrier.load(Relaxed) {
            // By the type invariants no callback comes after these, so the module may go.
            rcu::rcu_barrier();
        }
        // SAFETY: The leaves are not used again. A `LateDrop` drops a tree where that may sleep.
        unsafe { self.leaves.free() };
    }
}

/// The right to change the pages of one leaf.
///
/// # Invariants
///
/// `inside` is what the lock of `leaf` protects. `leaf` is in `tree`, and was found by `_walk`.
pub(super) struct Held<'a> {
    // Given back before the walk ends.
    inside: SpinLockGuard<'a, Inside>,
    leaf: NonNull<Leaf>,
    /// The number of one of the pages.
    page: usize,
    _walk: Walk<'a>,
    tree: &'a Tree,
}

impl Held<'_> {
    #[inline]
    fn leaf(&self) -> &Leaf {
        // SAFETY: By the type invariants the walk keeps it allocated.
        unsafe { self.leaf.as_ref() }
    }

    /// Finds the page of `part`, as [`Walk::page`] does.
    #[inline]
    pub(super) fn page(&self, part: Part) -> Option<Page<'_>> {
        // SAFETY: The read section of the walk lasts as long as `self`.
        unsafe { self.leaf().page(part.page()) }
    }

    /// Finds the pages of a run.
    #[inline]
    pub(super) fn pages(&self, run: Run) -> impl Iterator<Item = Option<Page<'_>>> {
        // SAFETY: The read section of the walk lasts as long as `self`.
        unsafe { self.leaf().pages(run) }
    }

    /// Adds a page where there is none.
    #[inline]
    pub(super) fn insert(&mut self, part: Part, new: NewPage) {
        // SAFETY: As in `Self::leaf`; it is not changed but by its own methods.
        let leaf = unsafe { self.leaf.as_ref() };
        leaf.insert(&mut self.inside, part.page(), new);
        if let Some(count) = &self.tree.count {
            count.add(1, Relaxed);
        }
    }

    /// Takes out the page of `part`, if there is one. Walkers may use it until they end.
    #[inline]
    pub(super) fn erase(&mut self, part: Part) {
        // SAFETY: As in `Self::leaf`; it is not changed but by its own methods.
        let leaf = unsafe { self.leaf.as_ref() };
        if leaf.take(&mut self.inside, part.page()) {
            if let Some(count) = &self.tree.count {
                count.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Sees to it that what was taken out is freed; takes the leaf out of the tree if it has no
    /// pages.
    #[inline]
    pub(super) fn prune(mut self) {
        let (leaf, tree) = (self.leaf, self.tree);
        let gone = self.leaf().count() == 0;
        if gone {
            self.inside.gone = true;
            // SAFETY: It is marked as gone, so it is freed below, after a grace period.
            unsafe { tree.leaves.erase(self.page) };
        }
        let removed = self.inside.removed.take();
        // RCU gets them without the lock.
        drop(self);
        if !removed.is_empty() {
            // INVARIANT: Set before the pages are given to RCU.
            tree.barrier.store(true, Relaxed);
            // SAFETY: They were taken out of the leaf. `barrier` is set, so the tree waits for RCU
            // when it is dropped, and its `LateDrop` keeps the code of the callback until then.
            unsafe { removed.free_later() };
        }
        if gone {
            // SAFETY: It was taken out of the tree, by us alone since the lock was held.
            unsafe { Leaf::free_later(leaf) };
        }
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
