// SPDX-License-Identifier: GPL-2.0

//! The lock of a unit, which is a bit in the first of its pages.
//!
//! It is held from the first to the last byte that is copied to or from the unit, with preemption
//! off, so no logical block is ever seen half written. Transfers of other units do not notice.
//!
//! C header: [`include/linux/bit_spinlock.h`](srctree/include/linux/bit_spinlock.h)

use super::{
    tree::{
        Tree,
        Walk, //
    },
    unit::Part,
};
use crate::{
    bindings,
    block::bio::piece::Piece, //
};
use core::ptr::NonNull;

/// A unit that nobody else may touch.
///
/// # Invariants
///
/// `page` is page number `first` and was found by `walk`. Its lock is held, and the unit was in the
/// tree when it was taken.
pub(super) struct Held<'w, 'a> {
    walk: &'w mut Walk<'a>,
    first: usize,
    page: NonNull<bindings::page>,
}

impl<'w, 'a> Held<'w, 'a> {
    /// Waits for the lock of the unit that starts with page `first`; [`None`] if there is no such
    /// page.
    #[inline]
    pub(super) fn wait(walk: &'w mut Walk<'a>, first: usize) -> Option<Self> {
        let mut page = walk.find(first)?;
        // SAFETY: The walk keeps the page allocated.
        while !unsafe { bindings::page_store_lock(page.as_ptr()) } {
            // SAFETY: The lock was just taken.
            unsafe { bindings::page_store_unlock(page.as_ptr()) };
            // The unit was removed while we waited. It had left the tree before the lock was given
            // back, so the next look finds another page or none.
            page = walk.find_far(first)?;
        }
        // INVARIANT: The lock was just taken, and the unit is in the tree.
        Some(Self { walk, first, page })
    }

    /// Finds a page of the unit.
    #[inline]
    fn find(&mut self, index: usize) -> Option<NonNull<bindings::page>> {
        if index == self.first {
            Some(self.page)
        } else {
            self.walk.find_far(index)
        }
    }

    /// Whether the page of this part exists.
    #[inline]
    pub(super) fn has(&mut self, part: Part) -> bool {
        self.find(part.page()).is_some()
    }

    /// The bytes of a part of the unit; [`None`] if the page does not exist, which means zeros.
    #[inline]
    pub(super) fn piece(&mut self, part: Part) -> Option<Piece<'_>> {
        let page = self.find(part.page())?;
        // SAFETY: The walk keeps the page allocated, and is borrowed for as long as the piece
        // exists. A part lies within its page.
        Some(unsafe { Piece::new(page, part.offset(), part.len()) })
    }
}

impl Drop for Held<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held, and the walk keeps the page allocated.
        unsafe { bindings::page_store_unlock(self.page.as_ptr()) };
    }
}

/// Takes the unit that starts with page `first` out of the tree.
///
/// Whoever holds its lock finishes first. Whoever waits for it then sees that it is gone.
pub(super) fn remove(tree: &Tree, first: usize, pages: usize) {
    // In this order: nobody takes the lock of the tree while holding that of a unit.
    let mut change = tree.change();
    let mut walk = tree.walk();
    if let Some(unit) = Held::wait(&mut walk, first) {
        // SAFETY: The walk keeps the page allocated, and we hold its lock.
        unsafe { bindings::page_store_set_removed(unit.page.as_ptr()) };
        (first..first + pages).for_each(|index| change.erase(index));
    };
}
