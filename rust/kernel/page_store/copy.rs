// SPDX-License-Identifier: GPL-2.0

//! The far end of a transfer: the memory of a request, or a plain buffer.

use crate::block::bio::{
    FromDisk,
    MappedBytes, //
    Segments,
    ToDisk,
};
use core::mem;

/// Bytes that are to be stored, if `D` is [`ToDisk`], or room for bytes that were, if it is
/// [`FromDisk`]; consumed from the start.
pub(super) trait Memory<D> {
    /// Lends the next bytes, as many as can be addressed at once but at most `max`, then leaves out
    /// what `f` took of them. Without a byte left, `f` is not called and [`None`] returned.
    fn window<R>(&mut self, max: usize, f: impl FnOnce(&mut MappedBytes<'_, D>) -> R) -> Option<R>;
}

impl Memory<ToDisk> for Segments<'_, ToDisk> {
    #[inline(always)]
    fn window<R>(
        &mut self,
        max: usize,
        f: impl FnOnce(&mut MappedBytes<'_, ToDisk>) -> R,
    ) -> Option<R> {
        self.with_mapped(max, f)
    }
}

impl Memory<FromDisk> for Segments<'_, FromDisk> {
    #[inline(always)]
    fn window<R>(
        &mut self,
        max: usize,
        f: impl FnOnce(&mut MappedBytes<'_, FromDisk>) -> R,
    ) -> Option<R> {
        self.with_mapped(max, f)
    }
}

impl Memory<ToDisk> for &[u8] {
    fn window<R>(
        &mut self,
        max: usize,
        f: impl FnOnce(&mut MappedBytes<'_, ToDisk>) -> R,
    ) -> Option<R> {
        let all = *self;
        let (next, _) = all.split_at(max.min(all.len()));
        if next.is_empty() {
            return None;
        }
        let mut window = MappedBytes::from(next);
        let result = f(&mut window);
        *self = &all[next.len() - window.len()..];
        Some(result)
    }
}

/// A buffer that is yet to be filled.
pub(super) struct Unfilled<'a>(pub(super) &'a mut [u8]);

impl Memory<FromDisk> for Unfilled<'_> {
    fn window<R>(
        &mut self,
        max: usize,
        f: impl FnOnce(&mut MappedBytes<'_, FromDisk>) -> R,
    ) -> Option<R> {
        let all = mem::take(&mut self.0);
        let len = max.min(all.len());
        if len == 0 {
            return None;
        }
        let mut window = MappedBytes::from(&mut all[..len]);
        let result = f(&mut window);
        let taken = len - window.len();
        self.0 = &mut all[taken..];
        Some(result)
    }
}
