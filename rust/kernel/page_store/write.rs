// SPDX-License-Identifier: GPL-2.0

//! The copying of a range of bytes to a tree.
//!
//! It goes at once or in chunks as reading does, each of which takes one lock more.

use super::{
    copy::Memory,
    page::{
        Blank,
        NewPage,
        Page, //
    },
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
    block::bio::{
        MappedBytes, //
        SegmentVisitor,
        Segments,
        ToDisk,
    },
    page::PAGE_SIZE,
    prelude::*, //
};

/// Copies `len` bytes into a tree, if they go to one page and come from where they can be addressed
/// at once; else nothing is done and [`None`] returned.
#[inline(always)]
pub(super) fn write_at_once(
    tree: &Tree,
    may_sleep: bool,
    at: u64,
    len: u32,
    from: &mut Segments<'_, ToDisk>,
) -> Option<Result> {
    let part = Part::single(at, len as usize)?;
    let user = AtOnce {
        tree,
        part,
        may_sleep,
    };
    from.visit_mapped(len, user)
}

/// The writing of a part of a page at once.
///
/// It sees to a missing page itself: whoever lends the bytes need remember nothing else of them
/// while it has the lock.
struct AtOnce<'a> {
    tree: &'a Tree,
    part: Part,
    may_sleep: bool,
}

impl SegmentVisitor<ToDisk> for AtOnce<'_> {
    #[inline(always)]
    fn visit(self, from: MappedBytes<'_, ToDisk>) -> Result {
        let Self {
            tree,
            part,
            may_sleep,
        } = self;
        let Some(held) = tree.try_hold(part.page()) else {
            return add_and_write(tree, part, may_sleep, from);
        };
        let Some(page) = held.page(part) else {
            if insert_at_once(held, part, from.reborrow()) {
                return Ok(());
            }
            return add_and_write(tree, part, may_sleep, from);
        };
        write_page(page, part, &from);
        Ok(())
    }
}

/// Writes to a page that is not there yet; `false` if there is no memory for it at once.
#[inline(never)]
fn insert_at_once(mut held: Held<'_>, part: Part, from: MappedBytes<'_, ToDisk>) -> bool {
    let Some(blank) = Blank::new(part) else {
        return false;
    };
    held.insert(part, blank.fill(&from));
    true
}

/// The same, waiting for memory if `may_sleep`; also for a leaf that is not there yet.
///
/// What it is told is not a struct, which would have an address, hence be in memory, always.
#[cold]
fn add_and_write(
    tree: &Tree,
    part: Part,
    may_sleep: bool,
    from: MappedBytes<'_, ToDisk>,
) -> Result {
    loop {
        // Memory is waited for with no lock held.
        add_page(tree, part, may_sleep)?;
        if let Some(held) = tree.hold(part.page()) {
            if let Some(page) = held.page(part) {
                write_page(page, part, &from);
                return Ok(());
            }
        }
        // It was taken out again.
    }
}

/// Copies over a part of a page.
#[inline(always)]
fn write_page(page: Page<'_>, part: Part, from: &MappedBytes<'_, ToDisk>) {
    let touched = part.touched();
    page.change(|old| old.with(touched), |page| page.write(part, from));
}

/// Copies `len` bytes into a tree with blocks of so many pages.
pub(super) fn write(
    tree: &Tree,
    block_pages: usize,
    may_sleep: bool,
    at: u64,
    len: usize,
    from: &mut impl Memory<ToDisk>,
) -> Result {
    let (mut at, end) = (at, range::end(at, len as u64)?);
    while at < end {
        let mut chunk = Chunk::new(at, end);
        at = at.wrapping_add(chunk.left() as u64);
        loop {
            let complete = match tree.hold(chunk.page()) {
                None => false,
                Some(mut held) if block_pages == 1 => write_pages(&mut held, &mut chunk, from),
                Some(held) => write_blocks(&held, block_pages, &mut chunk, from),
            };
            if complete {
                break;
            }
            // Memory is waited for with no lock held.
            add_pages(tree, chunk.block(block_pages), may_sleep)?;
        }
    }
    Ok(())
}

/// Copies a chunk; `false` means that the next page is missing, with no memory for it at once.
#[inline]
fn write_pages(held: &mut Held<'_>, chunk: &mut Chunk, from: &mut impl Memory<ToDisk>) -> bool {
    let mut rest = *chunk;
    let complete = loop {
        let mut missing = false;
        // Whole parts, for as long as the window lasts.
        let lent = from.window(rest.left(), |window| {
            loop {
                rest = write_run(held, rest, window);
                let Some(part) = rest.part() else { break };
                if let Some(page) = held.page(part) {
                    let Some(bytes) = window.split_off(part.len()) else {
                        break;
                    };
                    write_page(page, part, &bytes);
                } else if !insert_page(held, part, window) {
                    missing = true;
                    break;
                }
                rest.pass(part);
            }
            window.len()
        });
        if rest.left() == 0 {
            break true;
        }
        match lent {
            _ if missing => break false,
            // All of the window was used.
            Some(0) => (),
            // The next part reaches over its end.
            Some(_) => rest = write_over(held, rest, from),
            None => break true,
        }
    };
    *chunk = rest;
    complete
}

/// Copies over the next pages of a chunk, as far as they are there and the window lasts; returns
/// what is left.
///
/// Its loop is what most of a large transfer costs, so it shares no registers with anything else.
#[inline(never)]
fn write_run(held: &Held<'_>, mut chunk: Chunk, from: &mut MappedBytes<'_, ToDisk>) -> Chunk {
    let Some(run) = chunk.run(from.len()) else {
        return chunk;
    };
    let mut done = 0;
    let pages = run.parts().zip(held.pages(run));
    for ((part, page), bytes) in pages.zip(from.chunks(PAGE_SIZE)) {
        let Some(page) = page else { break };
        write_page(page, part, &bytes);
        done += 1;
    }
    let done = run.first(done);
    from.split_off(done.bytes());
    chunk.pass_run(done);
    chunk
}

/// Adds a page with a part that the window has all bytes of; `false` if it has not, or there is no
/// memory for the page.
#[inline(never)]
fn insert_page(held: &mut Held<'_>, part: Part, from: &mut MappedBytes<'_, ToDisk>) -> bool {
    if from.len() < part.len() {
        return false;
    }
    let Some(blank) = Blank::new(part) else {
        return false;
    };
    held.insert(part, blank.fill(from));
    from.split_off(part.len());
    true
}

/// Copies the next part of a chunk from several windows; returns what is left.
#[inline(never)]
fn write_over(held: &Held<'_>, mut chunk: Chunk, from: &mut impl Memory<ToDisk>) -> Chunk {
    let Some(part) = chunk.part() else {
        return chunk;
    };
    let Some(page) = held.page(part) else {
        return chunk;
    };
    let copy = |page: &Page<'_>| {
        let mut rest = part;
        while rest.len() > 0 {
            let lent = from.window(rest.len(), |window| {
                let (now, later) = rest.split(window.len());
                page.write(now, window);
                rest = later;
                window.clear();
            });
            if lent.is_none() {
                break;
            }
        }
    };
    page.change(|old| old.with(part.touched()), copy);
    chunk.pass(part);
    chunk
}

/// Copies a chunk block by block; `false` means that the next block has not all of its pages.
#[inline(never)]
fn write_blocks(
    held: &Held<'_>,
    block_pages: usize,
    chunk: &mut Chunk,
    from: &mut impl Memory<ToDisk>,
) -> bool {
    while chunk.left() > 0 {
        let block = chunk.block(block_pages);
        if !block.parts().all(|part| held.page(part).is_some()) {
            return false;
        }
        for _ in block.parts() {
            *chunk = write_over(held, *chunk, from);
        }
    }
    true
}

/// Adds those pages of a block that are missing, all or none; they are zeros, as before.
#[cold]
pub(super) fn add_pages(tree: &Tree, block: Chunk, may_sleep: bool) -> Result {
    block
        .parts()
        .try_for_each(|part| add_page(tree, part, may_sleep))
        .inspect_err(|_| remove_unused(tree, block))
}

/// Takes out those pages of a block that hold nothing. Who was about to write to one adds it again.
#[cold]
pub(super) fn remove_unused(tree: &Tree, block: Chunk) {
    let Some(mut held) = tree.hold(block.page()) else {
        return;
    };
    for part in block.parts() {
        if held
            .page(part)
            .is_some_and(|page| page.sectors().is_empty())
        {
            held.erase(part);
        }
    }
    held.prune();
}

/// Adds the page of a part, if it is missing.
#[cold]
fn add_page(tree: &Tree, part: Part, may_sleep: bool) -> Result {
    if tree.walk(part.page()).page(part).is_some() {
        return Ok(());
    }
    let new = NewPage::zeroed(may_sleep)?;
    let mut held = loop {
        if let Some(held) = tree.hold(part.page()) {
            break held;
        }
        tree.add_leaf(part.page(), may_sleep)?;
    };
    if held.page(part).is_none() {
        held.insert(part, new);
    }
    Ok(())
}
