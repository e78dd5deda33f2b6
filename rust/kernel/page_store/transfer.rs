// SPDX-License-Identifier: GPL-2.0

//! The copying of a range of bytes to or from a tree, unit by unit.

use super::{
    copy::{
        Sink,
        Source, //
    },
    exclusion::{
        self,
        Held, //
    },
    page::NewPage,
    tree::{
        Tree,
        Walk, //
    },
    unit::{
        Span,
        Unit, //
    },
};
use crate::{
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*, //
};

/// Copies `len` bytes out of the tree.
pub(super) fn read(tree: &Tree, unit: Unit, at: u64, len: usize, to: &mut impl Sink) -> Result {
    let spans = unit.spans(at, len)?;
    let mut walk = tree.walk();
    for span in spans {
        if span.begins_node() {
            // Where RCU read sections cannot be preempted, they should be short.
            drop(walk);
            walk = tree.walk();
        }
        read_span(&mut walk, &span, to);
    }
    Ok(())
}

/// Copies the bytes of one unit.
#[inline]
fn read_span(walk: &mut Walk<'_>, span: &Span, to: &mut impl Sink) {
    let mut unit = Held::wait(walk, span.first);
    for part in span.parts() {
        let from = unit.as_mut().and_then(|unit| unit.piece(part));
        to.take(from, part.len());
    }
}

/// Copies `len` bytes into the tree.
pub(super) fn write(
    tree: &Tree,
    unit: Unit,
    may_sleep: bool,
    at: u64,
    len: usize,
    from: &mut impl Source,
) -> Result {
    let spans = unit.spans(at, len)?;
    let mut walk = tree.walk();
    for span in spans {
        if span.begins_node() {
            // As for reading.
            drop(walk);
            walk = tree.walk();
        }
        while !write_span(&mut walk, &span, from) {
            // Memory is allocated outside the read section, and with no lock held.
            drop(walk);
            let done = add_pages(tree, unit, &span, may_sleep, from)?;
            walk = tree.walk();
            if done {
                break;
            }
        }
    }
    Ok(())
}

/// Copies bytes into one unit; `false` means that pages are missing, and nothing was copied.
#[inline]
fn write_span(walk: &mut Walk<'_>, span: &Span, from: &mut impl Source) -> bool {
    let Some(mut unit) = Held::wait(walk, span.first) else {
        return false;
    };
    if !span.parts().all(|part| unit.has(part)) {
        return false;
    }
    for part in span.parts() {
        if let Some(to) = unit.piece(part) {
            from.copy_to(to);
        } else {
            // Only if the block size was changed meanwhile, against the rules.
            from.skip(part.len());
        }
    }
    true
}

/// Adds the pages that a write to `span` needs; `true` means that it is done with that.
#[cold]
fn add_pages(
    tree: &Tree,
    unit: Unit,
    span: &Span,
    may_sleep: bool,
    from: &mut impl Source,
) -> Result<bool> {
    // A whole unit of one page is filled before anybody can see it, so it need not be zeroed.
    if (unit.pages(), span.len()) == (1, PAGE_SIZE) {
        let mut ahead = from.clone();
        if let Some(page) = NewPage::filled(&mut ahead, may_sleep)? {
            let done = tree.insert(span.first, page, may_sleep)?;
            if done {
                *from = ahead;
            }
            return Ok(done);
        }
    }
    // Its own pages, after the first of the unit.
    tree.insert(span.first, NewPage::zeroed(may_sleep)?, may_sleep)?;
    for part in span.parts().filter(|part| part.page() != span.first) {
        tree.insert(part.page(), NewPage::zeroed(may_sleep)?, may_sleep)?;
    }
    Ok(false)
}

/// Makes `len` bytes read as zeros.
pub(super) fn remove(tree: &Tree, unit: Unit, at: u64, len: u64) -> Result {
    let end = at.checked_add(len).ok_or(EINVAL)?;
    if len == 0 {
        return Ok(());
    }
    let last = usize::try_from((end - 1) >> PAGE_SHIFT).map_err(|_| EINVAL)?;
    let mut index = (at >> PAGE_SHIFT) as usize;
    // Only units that have pages are visited.
    while let Some(found) = tree.next(index, last) {
        let first = unit.first(found);
        remove_from_unit(tree, unit, first, at, end)?;
        index = first + unit.pages();
    }
    Ok(())
}

/// Removes those bytes from `at` to `end` that are in the unit which starts with page `first`.
fn remove_from_unit(tree: &Tree, unit: Unit, first: usize, at: u64, end: u64) -> Result {
    let start = (first as u64) << PAGE_SHIFT;
    let bytes = u64::from(unit.mask()) + 1;
    let from = at.saturating_sub(start);
    let to = (end - start).min(bytes);
    if (from, to) == (0, bytes) {
        exclusion::remove(tree, first, unit.pages());
        return Ok(());
    }
    let mut walk = tree.walk();
    for span in unit.spans(start + from, (to - from) as usize)? {
        zero_span(&mut walk, &span);
    }
    Ok(())
}

/// Sets the bytes of one unit to zero where it has pages.
fn zero_span(walk: &mut Walk<'_>, span: &Span) {
    let Some(mut unit) = Held::wait(walk, span.first) else {
        return;
    };
    for part in span.parts() {
        if let Some(piece) = unit.piece(part) {
            piece.fill(0);
        }
    }
}
