// SPDX-License-Identifier: GPL-2.0

//! The lending of a request's next bytes as a window.

use super::{
    iter::Segments,
    mapped_bytes::MappedBytes, //
    segment::Direction,
};
use crate::{
    bindings,
    error::Result,
    ffi, //
};

/// Bytes of a request that are mapped for as long as this exists.
///
/// # Invariants
///
/// `len` bytes at `start` are the mapping made last of those from `at` on in neighbouring pages, of
/// which `page` is the first.
struct Mapped {
    page: *mut bindings::page,
    at: usize,
    start: *mut ffi::c_void,
    len: usize,
}

impl Mapped {
    /// Maps the bytes from byte `done` of a range on, at most `len` of them.
    ///
    /// # Safety
    ///
    /// The range must have so many bytes, and its pages stay allocated for as long as the result
    /// exists. Mappings must go in the reverse of the order in which they came.
    #[inline(always)]
    unsafe fn new(range: bindings::bio_vec, done: u32, mut len: usize) -> Self {
        let (page, at) = (range.bv_page, range.bv_offset as usize + done as usize);
        // SAFETY: By the safety requirement. `len` becomes the number that was mapped.
        let start = unsafe { bindings::bio_map(page, at, &mut len) };
        // INVARIANT: They were just mapped.
        Self {
            page,
            at,
            start,
            len,
        }
    }

    /// All of the bytes, to be filled or read.
    ///
    /// # Safety
    ///
    /// The bytes may be written if `D` is [`FromDisk`](super::FromDisk), read otherwise. The window
    /// must be gone before `self` is.
    #[inline(always)]
    unsafe fn window<'a, D: Direction>(&self) -> MappedBytes<'a, D> {
        if !D::FILLS {
            self.flush(self.len);
        }
        // SAFETY: By the type invariants and the safety requirement.
        unsafe { MappedBytes::new(self.start.cast(), self.len) }
    }

    /// To be called when the first `len` bytes were filled, or read.
    #[inline(always)]
    fn used<D: Direction>(&self, len: usize) {
        if D::FILLS {
            self.flush(len.min(self.len));
        }
    }

    /// Makes the first `len` bytes, or others' changes to them, visible through all mappings.
    #[inline(always)]
    fn flush(&self, len: usize) {
        // SAFETY: By the type invariants the pages are allocated; there are `len` bytes.
        unsafe { bindings::bio_flush(self.page, self.at, len) };
    }
}

impl Drop for Mapped {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariant; there is no `MappedBytes` of it any more.
        unsafe { bindings::bio_unmap(self.start) };
    }
}

/// Whom all bytes of a transfer can be lent to.
///
/// It is no closure because a method can be told to be inlined.
pub(crate) trait SegmentVisitor<D> {
    /// Uses all of the bytes, or fails.
    fn take(self, bytes: MappedBytes<'_, D>) -> Result;
}

impl<D: Direction> Segments<'_, D> {
    /// Lends the next bytes, as many as can be addressed at once but at most `max`, then leaves out
    /// what `f` took of them. Without a byte left, `f` is not called and [`None`] returned.
    #[inline(always)]
    pub(crate) fn with_window<R>(
        &mut self,
        max: usize,
        f: impl FnOnce(&mut MappedBytes<'_, D>) -> R,
    ) -> Option<R> {
        let (range, done, left) = self.range()?;
        // SAFETY: The range has `left` more bytes, which stay there while `self` is borrowed.
        let mapped = unsafe { Mapped::new(range, done, max.min(left as usize)) };
        let len = mapped.len;
        if len == 0 {
            return None;
        }
        // SAFETY: The direction is that of the type. `f` gives the window back.
        let mut window = unsafe { mapped.window() };
        let result = f(&mut window);
        let taken = len.saturating_sub(window.len());
        mapped.used::<D>(taken);
        // It is no more than was left in the range.
        self.advance(taken as u32);
        Some(result)
    }

    /// Lends the next `len` bytes to `user` and leaves them out, unless it fails; [`None`] if they
    /// cannot be addressed at once.
    #[inline(always)]
    pub(crate) fn lend_all(&mut self, len: u32, user: impl SegmentVisitor<D>) -> Option<Result> {
        let (range, done, rest) = self.range_of(len)?;
        // SAFETY: The range has `len` more bytes, which stay there while `self` is borrowed.
        let mapped = unsafe { Mapped::new(range, done, len as usize) };
        if mapped.len < len as usize {
            return None;
        }
        // SAFETY: The direction is that of the type. `user` gives the window back: it takes one of
        // any lifetime, so cannot keep it.
        let used = user.take(unsafe { mapped.window() });
        if used.is_ok() {
            mapped.used::<D>(len as usize);
            *self = rest;
        }
        Some(used)
    }

    /// Runs `f` on what is left, for what is called seldom. As `f` gets a copy, `self` itself need
    /// have no address, and may be in registers else.
    #[inline(always)]
    pub(crate) fn apart<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let mut copy = self.clone();
        let result = f(&mut copy);
        *self = copy;
        result
    }
}
