// SPDX-License-Identifier: GPL-2.0

//! A list of bios as a request has it, built by hand for tests.

use super::{
    Direction,
    FromDisk,
    Segments,
    ToDisk, //
};
use crate::{
    bindings,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
};
use core::ptr;

/// A range of bytes: its offset in the first of its own pages, and its length.
pub type Range = (usize, usize);

/// A list of bios that owns its memory.
///
/// # Invariants
///
/// Each element of `vecs` owns the contiguous pages that it spans, at least one. The bios are
/// linked in order, and their arrays are slices of `vecs`. Neither vector is reallocated.
pub struct FakeRequest {
    vecs: KVec<bindings::bio_vec>,
    bios: KVec<bindings::bio>,
}

/// Returns the order of the page allocation that a range needs.
fn order((offset, len): Range) -> u32 {
    (offset + len)
        .max(1)
        .div_ceil(PAGE_SIZE)
        .next_power_of_two()
        .ilog2()
}

impl FakeRequest {
    /// Creates a bio for each list of ranges. The iterator of a bio starts after its first `done`
    /// bytes.
    pub fn new(lists: &[(&[Range], usize)]) -> Result<Self> {
        let count = lists.iter().map(|(ranges, _)| ranges.len()).sum();
        let mut fake = Self {
            vecs: KVec::with_capacity(count, GFP_KERNEL)?,
            bios: KVec::with_capacity(lists.len(), GFP_KERNEL)?,
        };
        for (ranges, done) in lists {
            fake.add(ranges, *done)?;
        }
        let first = fake.bios.as_mut_ptr();
        for i in 1..fake.bios.len() {
            // SAFETY: There are more than `i` bios.
            fake.bios[i - 1].bi_next = unsafe { first.add(i) };
        }
        Ok(fake)
    }

    /// Appends a bio. The vectors must have the capacity for it.
    fn add(&mut self, ranges: &[Range], done: usize) -> Result {
        let start = self.vecs.len();
        for &(offset, len) in ranges {
            // SAFETY: Allocating has no preconditions.
            let page = unsafe { bindings::alloc_pages(bindings::GFP_KERNEL, order((offset, len))) };
            if page.is_null() {
                return Err(ENOMEM);
            }
            let vec = bindings::bio_vec {
                bv_page: page,
                bv_len: len as u32,
                bv_offset: offset as u32,
            };
            self.vecs.push_within_capacity(vec).map_err(|_| ENOMEM)?;
        }
        // SAFETY: All zeros are a valid `struct bio`.
        let mut bio: bindings::bio = unsafe { core::mem::zeroed() };
        // SAFETY: There are at least `start` elements.
        bio.bi_io_vec = unsafe { self.vecs.as_mut_ptr().add(start) };
        bio.bi_iter.bi_size = (ranges.iter().map(|range| range.1).sum::<usize>() - done) as u32;
        // As in C, the iterator skips ranges that are used up.
        let mut done = done;
        for &(_, len) in ranges {
            if done == 0 || done < len {
                break;
            }
            done -= len;
            bio.bi_iter.bi_idx += 1;
        }
        bio.bi_iter.bi_offset = done as u32;
        self.bios.push_within_capacity(bio).map_err(|_| ENOMEM)
    }

    /// Calls `f` with the address and the number of the bytes in each page, in order.
    fn for_each_page(&self, mut f: impl FnMut(*mut u8, usize)) {
        for bio in self.bios.iter() {
            let (mut left, index) = (bio.bi_iter.bi_size as usize, bio.bi_iter.bi_idx as usize);
            let mut done = bio.bi_iter.bi_offset as usize;
            let mut i = index;
            while left > 0 {
                // SAFETY: The array has the length that the iterator gives.
                let vec = unsafe { *bio.bi_io_vec.add(i) };
                while done < vec.bv_len as usize && left > 0 {
                    let at = vec.bv_offset as usize + done;
                    let offset = at % PAGE_SIZE;
                    let len = (vec.bv_len as usize - done)
                        .min(PAGE_SIZE - offset)
                        .min(left);
                    // SAFETY: The range owns the page.
                    let map =
                        unsafe { bindings::kmap_local_page(vec.bv_page.add(at >> PAGE_SHIFT)) };
                    f(map.cast::<u8>().wrapping_add(offset), len);
                    // SAFETY: This is the most recent mapping.
                    unsafe { bindings::kunmap_local(map) };
                    done += len;
                    left -= len;
                }
                i += 1;
                done = 0;
            }
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bios
            .iter()
            .map(|bio| bio.bi_iter.bi_size as usize)
            .sum()
    }

    /// Returns the bytes, without use of the code under test.
    pub fn bytes(&self) -> Result<KVVec<u8>> {
        let mut bytes = KVVec::from_elem(0, self.len(), GFP_KERNEL)?;
        let mut at = 0;
        self.for_each_page(|from, len| {
            // SAFETY: The pages belong to `self` alone.
            unsafe { ptr::copy_nonoverlapping(from, bytes[at..][..len].as_mut_ptr(), len) };
            at += len;
        });
        Ok(bytes)
    }

    /// Sets the bytes, without use of the code under test.
    pub fn set(&mut self, bytes: &[u8]) {
        let mut at = 0;
        self.for_each_page(|to, len| {
            // SAFETY: The pages belong to `self` alone.
            unsafe { ptr::copy_nonoverlapping(bytes[at..][..len].as_ptr(), to, len) };
            at += len;
        });
    }

    /// Returns the segments of a read request with this memory.
    pub fn from_disk(&mut self) -> Segments<'_, FromDisk> {
        self.segments()
    }

    /// Returns the segments of a write request with this memory.
    pub fn to_disk(&mut self) -> Segments<'_, ToDisk> {
        self.segments()
    }

    fn segments<D: Direction>(&mut self) -> Segments<'_, D> {
        let first = self.bios.first().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: By the type invariants this is a list of bios whose arrays are long enough, and
        // it is borrowed while the segments exist.
        unsafe { Segments::from_raw(first, self.len() as u32) }
    }
}

impl Drop for FakeRequest {
    fn drop(&mut self) {
        for vec in self.vecs.iter() {
            let range = (vec.bv_offset as usize, vec.bv_len as usize);
            // SAFETY: The element owns these pages.
            unsafe { bindings::__free_pages(vec.bv_page, order(range)) };
        }
    }
}
