// SPDX-License-Identifier: GPL-2.0

//! Pages that were taken out of a store, to be freed together.

use crate::bindings;
use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    },
};

/// A chain of pages, whose links are in the pages' own `struct page`.
///
/// Dropping it frees nothing: it cannot know who still looks at the pages.
///
/// # Invariants
///
/// `first` is null or an order-0 page of a store, and so is the one that each is linked to. They
/// belong to the chain, except that those who have found them in the store may still read them.
pub(super) struct Chain {
    first: *mut bindings::page,
}

impl Chain {
    /// A chain without pages.
    #[inline]
    pub(super) const fn new() -> Self {
        // INVARIANT: There are no pages.
        Self {
            first: ptr::null_mut(),
        }
    }

    /// Whether there are no pages.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Adds a page.
    ///
    /// # Safety
    ///
    /// `page` must be an order-0 page of a store that belongs to the caller, who gives it away.
    #[inline]
    pub(super) unsafe fn push(&mut self, page: NonNull<bindings::page>) {
        // SAFETY: By the safety requirement.
        let link = unsafe { bindings::page_store_link(page.as_ptr()) };
        // SAFETY: By the safety requirement. The link is not where the word is that readers use.
        unsafe { *link = self.first };
        // INVARIANT: It was given to us.
        self.first = page.as_ptr();
    }

    /// Frees the pages after a grace period, by a callback of RCU that queues no other.
    ///
    /// # Safety
    ///
    /// The pages must not be found any more: only RCU read sections that have found them may still
    /// use them. The code of this crate must stay until the return of an `rcu_barrier()` that is
    /// called after this.
    // What calls it may be a part of another crate, but the callback is not.
    #[inline(never)]
    pub(super) unsafe fn free_later(self) {
        let Some(first) = NonNull::new(self.first) else {
            return;
        };
        // SAFETY: By the type invariants it is a page, which is ours.
        let head = unsafe { bindings::page_store_head(first.as_ptr()) };
        // SAFETY: The head is that of the first page, and nothing else uses it, since links are
        // elsewhere. By the safety requirement the callback stays until it has run.
        unsafe { bindings::call_rcu(head, Some(free_chain)) };
    }

    /// Takes all pages.
    #[inline]
    pub(super) fn take(&mut self) -> Self {
        mem::replace(self, Self::new())
    }

    /// Frees the pages.
    ///
    /// # Safety
    ///
    /// Nobody must use them any more.
    pub(super) unsafe fn free(self) {
        // SAFETY: By the type invariants and the safety requirement.
        unsafe { bindings::page_store_free_chain(self.first) };
    }
}

/// Frees the chain whose first page has this head.
///
/// # Safety
///
/// To be called by RCU alone, with what [`Chain::free_later`] gave to it.
#[inline(never)]
unsafe extern "C" fn free_chain(head: *mut bindings::callback_head) {
    // SAFETY: By the safety requirement the head is that of a page.
    let first = unsafe { bindings::page_store_of_head(head) };
    // INVARIANT: It was the first page of a chain, which was given away.
    let chain = Chain { first };
    // SAFETY: There was a grace period, so the read sections that have found the pages are over.
    unsafe { chain.free() };
}
