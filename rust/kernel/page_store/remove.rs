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
        // Only leaves that there are cost time.
        let Some(found) = tree.next_leaf((at >> PAGE_SHIFT) as usize) else {
            break;
        };
        at = at.max((found as u64) << PAGE_SHIFT);
        if at >= end {
            break;
        }
        let chunk = Chunk::new(at, end);
        at += chunk.left() as u64;
        if let Some(held) = tree.hold(chunk.page()) {
            remove_chunk(held, chunk);
        }
        if may_sleep {
            // SAFETY: The caller may sleep.
            unsafe { bindings::page_store_resched() };
        }
    }
    Ok(())
}

/// Removes the bytes of a chunk.
fn remove_chunk(mut held: Held<'_>, chunk: Chunk) {
    for part in chunk.parts() {
        let Some(page) = held.page(part) else {
            continue;
        };
        let left = page.sectors().without(part.covered());
        if left.is_empty() {
            // Nobody need see the zeros of a page that goes.
            held.erase(part);
        } else {
            page.change(|_| left, |page| page.zero(part));
        }
    }
    held.prune();
}
