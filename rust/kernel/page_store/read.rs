// SPDX-License-Identifier: GPL-2.0

//! The copying of a range of bytes from a tree.
//!
//! What is within a page, as most requests are, goes at once. The rest goes in chunks, each of
//! which takes one look-up, one RCU read section. Within a chunk it copies page by page, for as
//! long as a window of the other memory lasts. Where a page and a window end in different places,
//! the page is put together from several.

use super::{
    copy::Memory,
    leaves::Walk,
    page::Page,
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
        FromDisk,
        MappedBytes, //
        SegmentVisitor,
        Segments,
    },
    page::PAGE_SIZE,
    prelude::*, //
};

/// Copies `len` bytes out of a tree, if they are in one page and go to where they can be addressed
/// at once; else nothing is done and [`None`] returned.
#[inline(always)]
pub(super) fn read_at_once(
    tree: &Tree,
    at: u64,
    len: u32,
    to: &mut Segments<'_, FromDisk>,
) -> Option<Result> {
    let part = Part::single(at, len as usize)?;
    to.visit_mapped(len, AtOnce { tree, part })
}

/// The reading of a part of a page at once.
struct AtOnce<'a> {
    tree: &'a Tree,
    part: Part,
}

impl SegmentVisitor<FromDisk> for AtOnce<'_> {
    #[inline(always)]
    fn visit(self, to: MappedBytes<'_, FromDisk>) -> Result {
        let walk = self.tree.walk(self.part.page());
        read_page(self.tree, walk.page(self.part), self.part, to);
        Ok(())
    }
}

/// Copies `len` bytes out of a tree with blocks of so many pages.
pub(super) fn read(
    tree: &Tree,
    block_pages: usize,
    at: u64,
    len: usize,
    to: &mut impl Memory<FromDisk>,
) -> Result {
    let (mut at, end) = (at, range::end(at, len as u64)?);
    while at < end {
        let chunk = Chunk::new(at, end);
        at = at.wrapping_add(chunk.left() as u64);
        if block_pages == 1 {
            read_pages(tree, chunk, to);
        } else {
            read_blocks(tree, chunk, to);
        }
    }
    Ok(())
}

/// Copies a part of a page, all of it from before or after a change.
#[inline(always)]
fn read_page(tree: &Tree, page: Option<Page<'_>>, part: Part, to: MappedBytes<'_, FromDisk>) {
    match page {
        None => to.zero(),
        Some(page) if page.try_read(part, &to) => (),
        Some(_) => read_again(tree, part, to),
    }
}

/// Copies a chunk, no page of which may be mixed from before and after a change.
#[inline]
fn read_pages(tree: &Tree, mut chunk: Chunk, to: &mut impl Memory<FromDisk>) {
    let walk = tree.walk(chunk.page());
    loop {
        // Whole parts, for as long as the window lasts.
        let lent = to.window(chunk.left(), |window| {
            loop {
                chunk = read_run(tree, &walk, chunk, window);
                let Some(part) = chunk.part() else { break };
                let Some(bytes) = window.split_off(part.len()) else {
                    break;
                };
                read_page(tree, walk.page(part), part, bytes);
                chunk.pass(part);
            }
            window.len()
        });
        if chunk.left() == 0 {
            break;
        }
        match lent {
            // All of the window was used.
            Some(0) => (),
            // The next part reaches over its end.
            Some(_) => chunk = read_over(tree, chunk, to),
            None => break,
        }
    }
}

/// Copies the next pages of a chunk, for as long as the window lasts; returns what is left.
///
/// Its loop is what most of a large transfer costs, so it shares no registers with anything else.
#[inline(never)]
fn read_run(
    tree: &Tree,
    walk: &Walk<'_>,
    mut chunk: Chunk,
    to: &mut MappedBytes<'_, FromDisk>,
) -> Chunk {
    let Some(run) = chunk.run(to.len()) else {
        return chunk;
    };
    if let Some(to) = to.split_off(run.bytes()) {
        match walk.pages(run) {
            None => to.zero(),
            Some(pages) => {
                for ((part, page), bytes) in run.parts().zip(pages).zip(to.chunks(PAGE_SIZE)) {
                    read_page(tree, page, part, bytes);
                }
            }
        }
        chunk.pass_run(run);
    }
    chunk
}

/// Copies a part of a page that is being changed, once that is done.
#[cold]
fn read_again(tree: &Tree, part: Part, to: MappedBytes<'_, FromDisk>) {
    let held = tree.hold(part.page());
    match held.as_ref().and_then(|held| held.page(part)) {
        None => to.zero(),
        Some(page) => page.read(part, &to),
    }
}

/// Copies the next part of a chunk to several windows; returns what is left.
#[inline(never)]
fn read_over(tree: &Tree, mut chunk: Chunk, to: &mut impl Memory<FromDisk>) -> Chunk {
    if let Some(part) = chunk.part() {
        read_part(tree.hold(part.page()).as_ref(), part, to);
        chunk.pass(part);
    }
    chunk
}

/// Copies a chunk that has blocks of several pages.
#[inline(never)]
fn read_blocks(tree: &Tree, chunk: Chunk, to: &mut impl Memory<FromDisk>) {
    let held = tree.hold(chunk.page());
    for part in chunk.parts() {
        read_part(held.as_ref(), part, to);
    }
}

/// Copies a part of a page that nobody can change, to as many windows as it takes.
pub(super) fn read_part(held: Option<&Held<'_>>, part: Part, to: &mut impl Memory<FromDisk>) {
    let page = held.and_then(|held| held.page(part));
    let mut rest = part;
    while rest.len() > 0 {
        let lent = to.window(rest.len(), |window| {
            let (now, later) = rest.split(window.len());
            match page {
                None => window.zero(),
                Some(page) => page.read(now, window),
            }
            rest = later;
            window.clear();
        });
        if lent.is_none() {
            break;
        }
    }
}
