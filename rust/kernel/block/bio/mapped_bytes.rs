// SPDX-License-Identifier: GPL-2.0

//! A run of bytes that can be addressed at once.

use super::segment::{
    FromDisk,
    ToDisk, //
};
use crate::{
    bindings,
    ffi, //
};
use core::marker::PhantomData;

/// The bytes of some memory, to be filled if `D` is [`FromDisk`], to be read if it is [`ToDisk`].
///
/// As with a [`BvecPage`], their owner may change them at any time, so no reference to them is
/// made.
///
/// # Invariants
///
/// During `'a`, the `len` bytes from `at` on may be written by C's `memcpy` if `D` is [`FromDisk`],
/// and read by it if it is [`ToDisk`].
///
/// [`BvecPage`]: super::bvec_page::BvecPage
pub(crate) struct MappedBytes<'a, D> {
    at: *mut u8,
    len: usize,
    _lent: PhantomData<(&'a [u8], D)>,
}

impl<D> MappedBytes<'_, D> {
    /// Names a run of bytes.
    ///
    /// # Safety
    ///
    /// During the lifetime of the result, the `len` bytes from `at` on must be there to be written
    /// by C's `memcpy` if `D` is [`FromDisk`], to be read by it otherwise.
    #[inline]
    pub(super) unsafe fn new(at: *mut u8, len: usize) -> Self {
        // INVARIANT: The caller promises it.
        Self {
            at,
            len,
            _lent: PhantomData,
        }
    }

    /// The number of bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The same bytes once more.
    #[inline]
    pub(crate) fn again(&self) -> MappedBytes<'_, D> {
        MappedBytes { ..*self }
    }

    /// Splits off the first `len` bytes; [`None`] if there are fewer.
    #[inline]
    pub(crate) fn split_off(&mut self, len: usize) -> Option<Self> {
        if len > self.len {
            return None;
        }
        let first = Self { len, ..*self };
        // INVARIANT: The end stays where it was.
        self.at = self.at.wrapping_add(len);
        self.len -= len;
        Some(first)
    }

    /// The bytes in pieces of `size`, without those at the end that are fewer.
    #[inline]
    pub(crate) fn pieces(&self, size: usize) -> impl Iterator<Item = MappedBytes<'_, D>> {
        let (at, count) = (self.at, self.len / size);
        // INVARIANT: So many pieces are within the bytes.
        (0..count).map(move |piece| MappedBytes {
            at: at.wrapping_add(piece.wrapping_mul(size)),
            len: size,
            _lent: PhantomData,
        })
    }

    /// Leaves no byte.
    #[inline]
    pub(crate) fn clear(&mut self) {
        // INVARIANT: There is nothing to be promised.
        self.len = 0;
    }
}

impl MappedBytes<'_, FromDisk> {
    /// The address to copy to, of [`Self::len`] bytes.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut ffi::c_char {
        self.at.cast()
    }

    /// Sets all bytes to zero.
    #[inline]
    pub(crate) fn zero(&self) {
        // SAFETY: By the type invariants the bytes may be written.
        unsafe { bindings::memset_bytes(self.at.cast(), 0, self.len) };
    }
}

impl MappedBytes<'_, ToDisk> {
    /// The address to copy from, of [`Self::len`] bytes.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *const ffi::c_char {
        self.at.cast_const().cast()
    }
}

impl<'a> From<&'a [u8]> for MappedBytes<'a, ToDisk> {
    fn from(bytes: &'a [u8]) -> Self {
        // SAFETY: The bytes may be read while they are borrowed.
        unsafe { Self::new(bytes.as_ptr().cast_mut(), bytes.len()) }
    }
}

impl<'a> From<&'a mut [u8]> for MappedBytes<'a, FromDisk> {
    fn from(bytes: &'a mut [u8]) -> Self {
        // SAFETY: The bytes may be written while they are borrowed.
        unsafe { Self::new(bytes.as_mut_ptr(), bytes.len()) }
    }
}
