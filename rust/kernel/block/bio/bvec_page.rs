// SPDX-License-Identifier: GPL-2.0

//! A run of bytes within one page, to be copied but never referenced.
//!
//! Pages of a request may be mapped by a process, and two requests may transfer the same page at
//! once, so its bytes can change at any time. They are touched here alone, by C's `memcpy` and
//! `memset` between `kmap_local_page` and `kunmap_local`: the worst that a race does is a mixture
//! of old and new bytes.
//!
//! A page need not be one of those that processes map: file systems lend memory of their own, also
//! from `kmalloc`. What matters is that the submitter of a request lends its bytes
//! until the request has ended, so safe code has no reference to them.
//!
//! C header: [`include/linux/highmem.h`](srctree/include/linux/highmem.h)

use crate::{
    bindings,
    page::PAGE_SIZE,
    prelude::*, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// The bytes from `offset` to `offset + len` of a page.
///
/// # Invariants
///
/// - `page` points to a page that stays allocated for `'a`.
/// - `offset + len <= PAGE_SIZE`.
/// - The owner of the bytes lends them for `'a`: no reference to them exists.
#[derive(Clone, Copy)]
pub(crate) struct BvecPage<'a> {
    page: NonNull<bindings::page>,
    offset: usize,
    len: usize,
    _page: PhantomData<&'a bindings::page>,
}

impl BvecPage<'_> {
    /// Names a run of bytes.
    ///
    /// # Safety
    ///
    /// - `page` must point to a page that stays allocated for the lifetime of the result.
    /// - `offset + len` must not exceed `PAGE_SIZE`.
    /// - No reference to the bytes exists meanwhile. They may be read, or written, as the receiver
    ///   of the result will do.
    #[inline]
    pub(crate) unsafe fn new(page: NonNull<bindings::page>, offset: usize, len: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            page,
            offset,
            len,
            _page: PhantomData,
        }
    }

    /// The number of bytes, at most `PAGE_SIZE`.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Checks that `at .. at + len` lies within the piece; returns where it starts in the page.
    #[inline]
    fn within(&self, at: usize, len: usize) -> Result<usize> {
        if at > self.len || len > self.len - at {
            return Err(EINVAL);
        }
        Ok(self.offset + at)
    }

    /// Copies the bytes from `at` on into `to`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the piece ends before `to` is full; nothing is copied then.
    #[inline]
    pub(crate) fn read(self, at: usize, to: &mut [u8]) -> Result {
        let offset = self.within(at, to.len())?;
        // SAFETY: By the type invariants the page is allocated, and `offset` and the length were
        // checked. By them, too, the bytes are lent by their owner, so `to` has none of them.
        unsafe {
            bindings::memcpy_from_page(to.as_mut_ptr().cast(), self.page.as_ptr(), offset, to.len())
        };
        Ok(())
    }

    /// Copies `from` over the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the piece ends before `from` does; nothing is copied then.
    #[inline]
    pub(crate) fn write(self, at: usize, from: &[u8]) -> Result {
        let offset = self.within(at, from.len())?;
        // SAFETY: By the type invariants the page is allocated, and `offset` and the length were
        // checked. By them, too, the bytes are lent by their owner, so `from` has none of them.
        unsafe {
            bindings::memcpy_to_page(self.page.as_ptr(), offset, from.as_ptr().cast(), from.len())
        };
        Ok(())
    }

    /// Sets every byte to `byte`.
    #[inline]
    pub(crate) fn fill(self, byte: u8) {
        // SAFETY: By the type invariants the page is allocated and reaches far enough.
        unsafe { bindings::memset_page(self.page.as_ptr(), self.offset, byte.into(), self.len) };
    }

    /// Makes what others wrote to the page through their mappings visible here, or the reverse.
    ///
    /// It does nothing on architectures whose data caches have no aliases.
    #[inline]
    pub(crate) fn flush(self) {
        // SAFETY: By the type invariants the page is allocated.
        unsafe { bindings::flush_dcache_page(self.page.as_ptr()) };
    }
}

const _: () = assert!(PAGE_SIZE <= u32::MAX as usize);
