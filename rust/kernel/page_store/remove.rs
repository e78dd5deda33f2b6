// SPDX-License-Identifier: GPL-2.0

//! The removal of a range of bytes from a tree.

use super::{
    range::{
        self,
        Chunk, //
    },
    tree::{
        Held,
        Tree, //
    },
};
use crate::{
    bindings,
    page::PAGE_SHIFT,
    prelude::*, //
};

/// Makes `len` bytes read as zeros, and takes out the pages that hold nothing else.
pub(super) fn remove(tree: &Tree, may_sleep: bool, at: u64, len: u64) -> Result {
    let end = range::end(at, len)?;
    let mut at = at;
    while at < end {
        // Only nodes with pages are visited.
        let Some(found) = tree.next((at >> PAGE_SHIFT) as usize) else {
            break;
        };
        at = at.max((found as u64) << PAGE_SHIFT);
        let chunk = Chunk::new(at, end);
        at = at.saturating_add(chunk.left() as u64);
        if chunk.left() > 0 {
            remove_chunk(&tree.hold(chunk.page()), chunk);
        }
        if may_sleep {
            // SAFETY: The caller may sleep.
            unsafe { bindings::page_store_resched() };
        }
    }
    Ok(())
}

/// Removes the bytes of a chunk.
fn remove_chunk(held: &Held<'_>, chunk: Chunk) {
    let mut change = None;
    for part in chunk.parts() {
        let Some(page) = held.page(part) else {
            continue;
        };
        // Nobody need see the zeros of a page that goes as a whole.
        let left = page.sectors().without(part.covered());
        if !left.is_empty() {
            page.change(|_| left, |page| page.zero(part));
        } else {
            change
                .get_or_insert_with(|| held.change())
                .erase(part.page());
        }
    }
}
