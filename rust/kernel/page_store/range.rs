// SPDX-License-Identifier: GPL-2.0

//! The division of a range of bytes into the pages that hold it.

use super::part::{
    offset_of,
    page_of,
    Part, //
};
use crate::{
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
};
use core::{
    iter,
    ops::RangeInclusive, //
};

/// How many pages a leaf of the tree has, which is 1 MiB: one look-up finds all of them.
pub(super) const LEAF_PAGES: usize = (1 << 20) / PAGE_SIZE;

/// The most pages that a logical block spans: no block device has blocks beyond 64 KiB, but an
/// architecture may have as large pages.
const MAX_BLOCK_PAGES: usize = if PAGE_SIZE < 65536 {
    65536 / PAGE_SIZE
} else {
    1
};

// A block never reaches over two leaves.
const _: () = assert!(MAX_BLOCK_PAGES <= LEAF_PAGES && LEAF_PAGES.is_power_of_two());

/// The number of pages that a block of so many bytes spans, which is a power of two.
pub(super) fn block_pages(bytes: u32) -> usize {
    (bytes as usize)
        .div_ceil(PAGE_SIZE)
        .clamp(1, MAX_BLOCK_PAGES)
        .next_power_of_two()
}

/// The end of the `len` bytes from `at` on.
///
/// # Errors
///
/// [`EINVAL`] if it is beyond the pages that can be numbered.
#[inline]
pub(super) fn end(at: u64, len: u64) -> Result<u64> {
    let end = at.checked_add(len).ok_or(EINVAL)?;
    // On 64-bit machines that is always so.
    usize::try_from(end >> PAGE_SHIFT).map_err(|_| EINVAL)?;
    Ok(end)
}

/// The numbers of the pages from `page` on that are in the same leaf.
pub(super) fn of_leaf(page: usize) -> RangeInclusive<usize> {
    page..=page | (LEAF_PAGES - 1)
}

/// The number of the first page of the leaf after that of `page`; [`None`] for the last leaf, whose
/// last page may have the largest number that there is.
pub(super) fn next_leaf(page: usize) -> Option<usize> {
    (page | (LEAF_PAGES - 1)).checked_add(1)
}

/// What is left of a range of bytes whose pages are in the same leaf.
///
/// # Invariants
///
/// The `left` bytes from byte `at` on end in a page of the same leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    at: u64,
    left: usize,
}

impl Chunk {
    /// The bytes from `at` to `end`, which [`end`] returned and `at` is not beyond, as far as they
    /// are in one leaf.
    #[inline]
    pub(super) fn new(at: u64, end: u64) -> Self {
        const BYTES: u64 = (LEAF_PAGES * PAGE_SIZE) as u64;

        let room = BYTES - at % BYTES;
        // INVARIANT: `room` ends with the leaf.
        Self {
            at,
            left: end.wrapping_sub(at).min(room) as usize,
        }
    }

    /// All of the block of so many pages, a power of two, that page `page` is in.
    pub(super) fn of_block(page: usize, pages: usize) -> Self {
        // INVARIANT: A block does not reach over two leaves.
        Self {
            at: ((page & !(pages - 1)) as u64) << PAGE_SHIFT,
            left: pages * PAGE_SIZE,
        }
    }

    /// The number of the page that the next byte is in.
    #[inline]
    pub(super) fn page(&self) -> usize {
        page_of(self.at)
    }

    /// How many bytes are left.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Those of the next bytes that are in the same page; [`None`] if nothing is left.
    #[inline]
    pub(super) fn part(&self) -> Option<Part> {
        (self.left > 0).then_some(Part::new(self.at, self.left))
    }

    /// Goes on to the next page; `part` is what [`Self::part`] returned.
    #[inline]
    pub(super) fn pass(&mut self, part: Part) {
        // INVARIANT: What is left starts with the next page, if it is not nothing.
        self.at = self.at.wrapping_add(part.len() as u64);
        self.left = self.left.wrapping_sub(part.len());
    }

    /// The next pages, as far as all of their bytes are left, and among the next `most`; [`None`]
    /// if there is no such page.
    #[inline]
    pub(super) fn run(&self, most: usize) -> Option<Run> {
        let count = self.left.min(most) / PAGE_SIZE;
        // INVARIANT: They are in the same leaf, as all that is left.
        (offset_of(self.at) == 0 && count > 0).then_some(Run { at: self.at, count })
    }

    /// Goes on behind a run; `run` is the start of what [`Self::run`] returned.
    #[inline]
    pub(super) fn pass_run(&mut self, run: Run) {
        // INVARIANT: What is left starts with the next page, if it is not nothing.
        self.at = self.at.wrapping_add(run.bytes() as u64);
        self.left = self.left.wrapping_sub(run.bytes());
    }

    /// Those of the next bytes that are in the same block of so many pages, a power of two.
    pub(super) fn block(&self, pages: usize) -> Self {
        let start = (self.page() & (pages - 1)) * PAGE_SIZE + offset_of(self.at);
        // INVARIANT: It is a part of the bytes that are left.
        Self {
            left: self.left.min(pages * PAGE_SIZE - start),
            ..*self
        }
    }

    /// The parts of what is left, one for each page.
    #[inline]
    pub(super) fn parts(mut self) -> impl Iterator<Item = Part> {
        iter::from_fn(move || {
            let part = self.part()?;
            self.pass(part);
            Some(part)
        })
    }
}

/// Some whole pages in a row.
///
/// # Invariants
///
/// Byte `at` is the first of a page; this and the pages after it, `count` together, are in the same
/// leaf.
#[derive(Clone, Copy)]
pub(super) struct Run {
    at: u64,
    count: usize,
}

impl Run {
    /// The number of the first page.
    #[inline]
    pub(super) fn page(&self) -> usize {
        page_of(self.at)
    }

    /// How many pages there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many bytes they have.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.count * PAGE_SIZE
    }

    /// The first `count` of them, or all if these are fewer.
    #[inline]
    pub(super) fn first(self, count: usize) -> Self {
        // INVARIANT: There are no others among them.
        Self {
            count: count.min(self.count),
            ..self
        }
    }

    /// The pages, each of them as a part.
    #[inline]
    pub(super) fn parts(self) -> impl Iterator<Item = Part> {
        (0..self.count)
            .map(move |page| Part::of_page(self.at.wrapping_add((page as u64) << PAGE_SHIFT)))
    }
}
