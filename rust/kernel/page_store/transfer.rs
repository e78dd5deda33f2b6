// SPDX-License-Identifier: GPL-2.0

//! The copying of a range of bytes to or from a tree.
//!
//! It goes in chunks, each of which takes one look-up, one RCU read section and, for writing, one
//! lock. Within a chunk it copies page by page, for as long as a window of the other memory lasts.
//! Where a page and a window end in different places, the page is put together from several.

use super::{
    copy::Memory,
    page::{
        NewPage,
        Page, //
    },
    range::{
        self,
        Chunk,
        Part, //
    },
    tree::{
        Held,
        Tree, //
    },
};
use crate::{
    block::bio::{
        FromDisk,
        ToDisk,
        Window, //
    },
    prelude::*, //
};

/// Copies `len` bytes out of a tree with blocks of so many pages.
pub(super) fn read(
    tree: &Tree,
    block_pages: usize,
    at: u64,
    len: usize,
    to: &mut impl Memory<FromDisk>,
) -> Result {
    let end = range::end(at, len as u64)?;
    let mut at = at;
    while at < end {
        let chunk = Chunk::new(at, end);
        at += chunk.left() as u64;
        if block_pages == 1 {
            read_pages(tree, chunk, to);
        } else {
            read_held(&tree.hold(chunk.page()), chunk, to);
        }
    }
    Ok(())
}

/// Copies a chunk, no page of which may be mixed from before and after a change.
#[inline]
fn read_pages(tree: &Tree, mut chunk: Chunk, to: &mut impl Memory<FromDisk>) {
    let walk = tree.walk(chunk.page());
    loop {
        // Whole parts, for as long as the window lasts.
        let lent = to.window(chunk.left(), |window| {
            while let Some(part) = chunk.part() {
                let Some(bytes) = window.split_off(part.len()) else {
                    break;
                };
                match walk.page(part) {
                    None => bytes.zero(),
                    Some(page) if page.try_read(part, &bytes) => (),
                    Some(_) => read_again(tree, part, &bytes),
                }
                chunk.pass(part);
            }
            window.len()
        });
        let Some(part) = chunk.part() else { break };
        match lent {
            // All of the window was used.
            Some(0) => (),
            Some(_) => {
                read_part(&tree.hold(part.page()), part, to);
                chunk.pass(part);
            }
            None => break,
        }
    }
}

/// Copies a part of a page that is being changed, once that is done.
#[cold]
fn read_again(tree: &Tree, part: Part, to: &Window<'_, FromDisk>) {
    match tree.hold(part.page()).page(part) {
        None => to.zero(),
        Some(page) => page.read(part, to),
    }
}

/// Copies a chunk that nobody can change.
fn read_held(held: &Held<'_>, mut chunk: Chunk, to: &mut impl Memory<FromDisk>) {
    while let Some(part) = chunk.part() {
        read_part(held, part, to);
        chunk.pass(part);
    }
}

/// Copies a part of a page that nobody can change, to as many windows as it takes.
pub(super) fn read_part(held: &Held<'_>, part: Part, to: &mut impl Memory<FromDisk>) {
    let page = held.page(part);
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

/// Copies `len` bytes into a tree with blocks of so many pages.
pub(super) fn write(
    tree: &Tree,
    block_pages: usize,
    may_sleep: bool,
    at: u64,
    len: usize,
    from: &mut impl Memory<ToDisk>,
) -> Result {
    let end = range::end(at, len as u64)?;
    let mut at = at;
    while at < end {
        let mut chunk = Chunk::new(at, end);
        at += chunk.left() as u64;
        loop {
            let held = tree.hold(chunk.page());
            let done = if block_pages == 1 {
                write_pages(&held, &mut chunk, from)
            } else {
                write_blocks(&held, block_pages, &mut chunk, from)
            };
            if done {
                break;
            }
            // Memory is waited for with no lock held.
            drop(held);
            add_pages(tree, chunk.block(block_pages), may_sleep)?;
        }
    }
    Ok(())
}

/// Copies a chunk as far as there are pages; returns whether that is all of it.
#[inline]
fn write_pages(held: &Held<'_>, chunk: &mut Chunk, from: &mut impl Memory<ToDisk>) -> bool {
    loop {
        let mut missing = false;
        // Whole parts, for as long as the window lasts.
        let lent = from.window(chunk.left(), |window| {
            while let Some(part) = chunk.part() {
                let Some(page) = held.page(part) else {
                    missing = !add_filled(held, part, window);
                    if missing {
                        break;
                    }
                    chunk.pass(part);
                    continue;
                };
                let Some(bytes) = window.split_off(part.len()) else {
                    break;
                };
                page.change(
                    |sectors| sectors.with(part.touched()),
                    |page| page.write(part, &bytes),
                );
                chunk.pass(part);
            }
            window.len()
        });
        let Some(part) = chunk.part() else {
            return true;
        };
        match lent {
            _ if missing => return false,
            // All of the window was used.
            Some(0) => (),
            Some(_) => {
                if let Some(page) = held.page(part) {
                    write_part(page, part, from);
                }
                chunk.pass(part);
            }
            None => return true,
        }
    }
}

/// Adds the page of `part`, filled from the window before anybody can see it, so that it need not
/// be zeroed; returns whether that could be done at once.
#[inline]
fn add_filled(held: &Held<'_>, part: Part, window: &mut Window<'_, ToDisk>) -> bool {
    let Some(new) = NewPage::filled(part, window) else {
        return false;
    };
    let added = held.insert(part.page(), new);
    if added {
        window.split_off(part.len());
    }
    added
}

/// Copies a chunk block by block, as far as all the pages of these are there; returns whether that
/// is all of it.
fn write_blocks(
    held: &Held<'_>,
    block_pages: usize,
    chunk: &mut Chunk,
    from: &mut impl Memory<ToDisk>,
) -> bool {
    while chunk.left() > 0 {
        let block = chunk.block(block_pages);
        let complete = block.parts().all(|part| held.page(part).is_some());
        if !complete {
            return false;
        }
        for part in block.parts() {
            if let Some(page) = held.page(part) {
                write_part(page, part, from);
            }
            chunk.pass(part);
        }
    }
    true
}

/// Copies a part of a page from as many windows as it takes.
fn write_part(page: Page<'_>, part: Part, from: &mut impl Memory<ToDisk>) {
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
    page.change(|sectors| sectors.with(part.touched()), copy);
}

/// Adds those pages of a block that are missing; they are zeros, as before.
#[cold]
fn add_pages(tree: &Tree, block: Chunk, may_sleep: bool) -> Result {
    for part in block.parts() {
        if tree.walk(part.page()).page(part).is_none() {
            tree.insert(part.page(), NewPage::zeroed(may_sleep)?, may_sleep)?;
        }
    }
    Ok(())
}
