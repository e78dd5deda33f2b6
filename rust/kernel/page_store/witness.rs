// SPDX-License-Identifier: GPL-2.0

//! What a test sees the end of a page by.

use super::{
    page::Page,
    part::Part,
    tree::Tree, //
};
use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// A reference to a page, by which a test sees that the tree has freed it.
pub(super) struct Witness(Page<'static>);

impl Witness {
    /// Takes a reference to a page that is in the tree.
    pub(super) fn new(tree: &Tree, part: Part) -> Result<Self> {
        let walk = tree.walk(part.page());
        let raw = walk.page(part).ok_or(EINVAL)?.as_raw();
        // SAFETY: The walk keeps the page.
        let count = unsafe { &raw mut (*raw.as_ptr())._refcount.counter };
        // SAFETY: C uses it as an atomic.
        unsafe { Atomic::from_ptr(count) }.add(1, Relaxed);
        // SAFETY: The reference keeps the page.
        Ok(Self(unsafe { Page::from_raw(raw) }))
    }

    /// Whether the tree has freed the page: it forgets its sectors then.
    pub(super) fn is_freed(&self) -> bool {
        self.0.sectors().is_empty()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: The reference is ours.
        unsafe { bindings::page_store_free(self.0.as_raw().as_ptr()) };
    }
}
