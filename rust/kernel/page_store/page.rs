// SPDX-License-Identifier: GPL-2.0

//! A page on its way into a store.

use super::copy::Source;
use crate::{
    bindings,
    block::bio::piece::Piece,
    page::PAGE_SIZE,
    prelude::*, //
};
use core::ptr::NonNull;

/// A page that is in no tree yet.
///
/// # Invariants
///
/// It owns the order-0 page `raw`, and all bytes of that are initialised.
pub(super) struct NewPage {
    raw: NonNull<bindings::page>,
}

impl NewPage {
    /// Allocates a page.
    fn new(zeroed: bool, may_sleep: bool) -> Result<Self> {
        // SAFETY: Allocating has no preconditions.
        let page = unsafe { bindings::page_store_alloc(zeroed, may_sleep) };
        Ok(Self {
            raw: NonNull::new(page).ok_or(ENOMEM)?,
        })
    }

    /// The page for C.
    pub(super) fn as_ptr(&self) -> *mut bindings::page {
        self.raw.as_ptr()
    }

    /// Allocates a page of zeros.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, even after waiting for some if `may_sleep`.
    pub(super) fn zeroed(may_sleep: bool) -> Result<Self> {
        // INVARIANT: It was just allocated, and zeroed.
        Self::new(true, may_sleep)
    }

    /// Allocates a page that holds the next bytes of `from`; [`None`] if there are too few of them.
    ///
    /// # Errors
    ///
    /// As for [`Self::zeroed`].
    pub(super) fn filled(from: &mut impl Source, may_sleep: bool) -> Result<Option<Self>> {
        let page = Self::new(false, may_sleep)?;
        // SAFETY: The page stays allocated while `page` lives, and a page is what it is.
        let copied = from.copy_to(unsafe { Piece::new(page.raw, 0, PAGE_SIZE) });
        // INVARIANT: It was just allocated, and all of it written.
        Ok((copied == PAGE_SIZE).then_some(page))
    }
}

impl Drop for NewPage {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the page is ours.
        unsafe { bindings::page_store_free(self.raw.as_ptr()) };
    }
}
