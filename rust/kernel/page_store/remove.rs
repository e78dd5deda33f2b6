// SPDX-License-Identifier: GPL-2.0

//! The removal of a range of bytes from a tree.

use super::{
    part::Part,
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
    let Some(page) = Part::whole(at, len) else {
        return remove_chunks(tree, may_sleep, at, len);
    };
    match tree.try_hold(page.page()) {
        Some(held) => remove_page(held, page),
        None => remove_page_again(tree, page.page()),
    }
    Ok(())
}

/// Removes a page of the leaf that is held.
#[inline(always)]
fn remove_page(mut held: Held<'_>, page: Part) {
    held.erase(page);
    held.prune();
}

/// Removes page `page`, if its leaf is there. It is apart, with no more than it needs, so that what
/// removes a page at once stays small.
#[cold]
#[inline(never)]
fn remove_page_again(tree: &Tree, page: usize) {
    if let Some(held) = tree.hold(page) {
        remove_page(held, Part::of_page((page as u64) << PAGE_SHIFT));
    }
}

/// As [`remove`], of any range.
#[inline(never)]
fn remove_chunks(tree: &Tree, may_sleep: bool, at: u64, len: u64) -> Result {
    let end = range::end(at, len)?;
    let mut at = at;
    while at < end {
        let chunk = Chunk::new(at, end);
        if let Some(held) = tree.hold(chunk.page()) {
            remove_held(held, chunk);
            at += chunk.left() as u64;
        } else if let Some(found) = tree.next_leaf(chunk.page()) {
            // Only leaves that there are cost time.
            at = at.max((found as u64) << PAGE_SHIFT);
        } else {
            break;
        }
        if may_sleep {
            // SAFETY: The caller may sleep.
            unsafe { bindings::page_store_resched() };
        }
    }
    Ok(())
}

/// Removes a chunk of the leaf that is held.
pub(super) fn remove_held(mut held: Held<'_>, chunk: Chunk) {
    for part in chunk.parts() {
        remove_part(&mut held, part);
    }
    held.prune();
}

/// Removes a part of a page, if there is one.
#[inline(always)]
fn remove_part(held: &mut Held<'_>, part: Part) {
    if part.is_page() {
        // Nobody need see the zeros of a page that goes.
        held.erase(part);
    } else if let Some(page) = held.page(part) {
        let left = page.sectors().without(part.covered());
        if left.is_empty() {
            held.erase(part);
        } else {
            page.change(|_| left, |page| page.zero(part));
        }
    }
}
