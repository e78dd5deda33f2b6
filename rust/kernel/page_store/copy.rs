// SPDX-License-Identifier: GPL-2.0

//! The far end of a transfer: the memory of a request, or a plain buffer.

use crate::block::bio::{
    piece::Piece,
    FromDisk,
    Segments,
    ToDisk, //
};
use core::mem;

/// Bytes that are to be stored, consumed from the start.
pub(super) trait Source: Clone {
    /// Copies the next bytes over all of `to`, which is in a page of a store.
    ///
    /// Returns how many there were; callers see to it that there are enough.
    fn copy_to(&mut self, to: Piece<'_>) -> usize;

    /// Leaves out the next `len` bytes.
    fn skip(&mut self, len: usize);
}

/// Room for bytes that were stored, filled from the start.
pub(super) trait Sink {
    /// Takes the first `len` bytes of `from`, which is in a page of a store and no shorter; without
    /// it, `len` zeros.
    fn take(&mut self, from: Option<Piece<'_>>, len: usize);
}

impl Source for Segments<'_, ToDisk> {
    #[inline]
    fn copy_to(&mut self, to: Piece<'_>) -> usize {
        let mut left = to;
        while left.len() > 0 {
            let Some(from) = self.next_up_to(left.len() as u32) else {
                break;
            };
            // SAFETY: The pages of a store are in no request.
            unsafe { from.copy_to(left) };
            left = left.skip(from.size());
        }
        to.len() - left.len()
    }

    #[cold]
    fn skip(&mut self, len: usize) {
        self.skip_bytes(len as u32);
    }
}

impl Sink for Segments<'_, FromDisk> {
    #[inline]
    fn take(&mut self, mut from: Option<Piece<'_>>, len: usize) {
        let mut left = len;
        while left > 0 {
            let Some(to) = self.next_up_to(left as u32) else {
                break;
            };
            left -= to.size();
            let Some(piece) = from else {
                to.fill(0);
                continue;
            };
            // SAFETY: The pages of a store are in no request.
            unsafe { to.copy_from(piece) };
            from = Some(piece.skip(to.size()));
        }
    }
}

impl Source for &[u8] {
    fn copy_to(&mut self, to: Piece<'_>) -> usize {
        let (now, later) = self.split_at(to.len().min(self.len()));
        *self = later;
        // It fits, because it was cut to the length of the piece.
        to.write(0, now).map_or(0, |()| now.len())
    }

    fn skip(&mut self, len: usize) {
        *self = self.get(len..).unwrap_or_default();
    }
}

/// A buffer that is yet to be filled.
pub(super) struct Unfilled<'a>(pub(super) &'a mut [u8]);

impl<'a> Unfilled<'a> {
    /// Splits off the next `len` bytes.
    fn next(&mut self, len: usize) -> &'a mut [u8] {
        let all = mem::take(&mut self.0);
        let (next, rest) = all.split_at_mut(len.min(all.len()));
        self.0 = rest;
        next
    }
}

impl Sink for Unfilled<'_> {
    fn take(&mut self, from: Option<Piece<'_>>, len: usize) {
        let next = self.next(len);
        match from {
            // It fits, because the piece is no shorter.
            Some(piece) => drop(piece.read(0, next)),
            None => next.fill(0),
        }
    }
}
