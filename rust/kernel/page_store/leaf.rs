// SPDX-License-Identifier: GPL-2.0

//! A leaf of a tree: some neighbouring pages with the lock for changing them.

use super::{
    page::{
        NewPage,
        Page, //
    },
    range::LEAF_PAGES, //
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
    /// The number of pages.
    pub(super) pages: usize,
    /// Whether the leaf was taken out of its tree.
    pub(super) gone: bool,
}

/// A row of pages, some of which may be missing.
///
/// # Invariants
///
/// What is in `pages` is null or an order-0 page that belongs to the leaf alone, until RCU has
/// freed it. It is changed under the lock.
#[pin_data]
#[repr(C, align(64))]
pub(super) struct Leaf {
    #[pin]
    pub(super) inside: SpinLock<Inside>,
    /// For RCU, when the leaf is given up.
    #[pin]
    head: Opaque<bindings::callback_head>,
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
                    pages: 0,
                    gone: false,
                },
                c_str!("PageStore"),
                class,
            ),
            head <- Opaque::uninit(),
            pages: Row(array::from_fn(|_| Atomic::new(ptr::null_mut()))),
        });
        // SAFETY: Allocating has no preconditions.
        let new = unsafe { bindings::page_store_alloc_leaf(mem::size_of::<Self>(), may_sleep) };
        let new = NonNull::new(new.cast::<Self>()).ok_or(ENOMEM)?;
        // SAFETY: There is as much memory, aligned to at least the largest power of two that
        // divides the size; it stays where it is.
        unsafe { init.__pinned_init(new.as_ptr()) }?;
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

    /// Makes `new` the page with this number, of which there was none.
    #[inline]
    pub(super) fn insert(&self, inside: &mut Inside, page: usize, new: NewPage) {
        inside.pages += 1;
        // INVARIANT: The page belongs to the leaf now. Its bytes are seen before itself.
        self.pages.0[page % LEAF_PAGES].store(new.into_raw(), Release);
    }

    /// Takes out the page with this number. Whoever has found it may go on to use it until the end
    /// of its RCU read section.
    pub(super) fn take(&self, inside: &mut Inside, page: usize) -> Option<NonNull<bindings::page>> {
        let slot = &self.pages.0[page % LEAF_PAGES];
        let raw = NonNull::new(slot.load(Relaxed))?;
        inside.pages -= 1;
        slot.store(ptr::null_mut(), Relaxed);
        Some(raw)
    }

    /// Frees a leaf that has no pages, once nobody looks at it any more.
    ///
    /// # Safety
    ///
    /// The leaf must be out of its tree, and not be used except by those who found it there in an
    /// RCU read section.
    pub(super) unsafe fn give_up(leaf: NonNull<Self>) {
        // SAFETY: The leaf is allocated, and nobody else uses its head.
        unsafe { bindings::kvfree_call_rcu((*leaf.as_ptr()).head.get(), leaf.as_ptr().cast()) };
    }

    /// Frees a leaf with its pages.
    ///
    /// # Safety
    ///
    /// Nobody must use it, or its pages, any more.
    pub(super) unsafe fn free(leaf: NonNull<Self>) {
        // SAFETY: The leaf is allocated, and ours alone.
        for slot in unsafe { &(*leaf.as_ptr()).pages.0 } {
            let page = slot.load(Relaxed);
            if !page.is_null() {
                // SAFETY: By the type invariants the page belongs to the leaf.
                unsafe { bindings::page_store_free(page) };
            }
        }
        // SAFETY: It was allocated by `new`, and there is nothing in it to be dropped.
        unsafe { bindings::kfree(leaf.as_ptr().cast()) };
    }
}
