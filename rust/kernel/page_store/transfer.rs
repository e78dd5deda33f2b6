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
#[inline]
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
        at = at.wrapping_add(chunk.left() as u64);
        if block_pages == 1 {
            read_pages(tree, chunk, to);
        } else {
            read_blocks(tree, chunk, to);
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
                    Some(_) => read_again(tree, part, bytes),
                }
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

/// Copies a part of a page that is being changed, once that is done.
#[cold]
fn read_again(tree: &Tree, part: Part, to: Window<'_, FromDisk>) {
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

/// Copies `len` bytes into a tree with blocks of so many pages.
#[inline]
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
    loop {
        let mut missing = false;
        // Whole parts, for as long as the window lasts.
        let lent = from.window(chunk.left(), |window| {
            while let Some(part) = chunk.part() {
                if let Some(page) = held.page(part) {
                    let Some(bytes) = window.split_off(part.len()) else {
                        break;
                    };
                    let touched = part.touched();
                    page.change(|old| old.with(touched), |page| page.write(part, &bytes));
                } else {
                    let Some(new) = NewPage::filled(part, window) else {
                        missing = true;
                        break;
                    };
                    held.insert(part, new);
                    window.split_off(part.len());
                }
                chunk.pass(part);
            }
            window.len()
        });
        if chunk.left() == 0 {
            return true;
        }
        match lent {
            _ if missing => return false,
            // All of the window was used.
            Some(0) => (),
            // The next part reaches over its end.
            Some(_) => write_over(held, chunk, from),
            None => return true,
        }
    }
}

/// Copies the next part of a chunk from several windows.
#[inline(never)]
fn write_over(held: &Held<'_>, chunk: &mut Chunk, from: &mut impl Memory<ToDisk>) {
    let Some(part) = chunk.part() else { return };
    let Some(page) = held.page(part) else { return };
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
            write_over(held, chunk, from);
        }
    }
    true
}

/// Adds those pages of a block that are missing; they are zeros, as before.
#[cold]
pub(super) fn add_pages(tree: &Tree, block: Chunk, may_sleep: bool) -> Result {
    for part in block.parts() {
        if tree.walk(part.page()).page(part).is_some() {
            continue;
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
    }
    Ok(())
}
