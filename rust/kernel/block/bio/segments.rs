// SPDX-License-Identifier: GPL-2.0

//! The memory of a request as a sequence of segments.
//!
//! [`Segments`] does what C's `rq_for_each_segment()` does: it follows the list of bios, in each
//! bio the array of ranges from where its iterator stands, and in each range page by page. It works
//! on copies of the iterators, because completion needs the originals unchanged.
//!
//! C header: [`include/linux/bvec.h`](srctree/include/linux/bvec.h)

use super::segment::{
    BvecPage,
    Direction,
    FromDisk,
    MappedBytes,
    Segment, //
};
use crate::{
    bindings,
    error::Result,
    ffi,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// The memory of a request, or what is left of it, as a sequence of [`Segment`]s.
///
/// It is an [`Iterator`], lent by the started request. Segments come in the order of the sectors,
/// each within one page; together they are as long as the request.
///
/// # Invariants
///
/// - While `in_bio` is not 0, `bio` points to a bio that stays as it is during `'a`, and whose
///   array has at least `in_bio` more bytes from byte `done` of element `index` on.
/// - `bio` is null or points to such a bio; the bios after it in the list are the same, for as many
///   bytes as their own iterators say.
/// - All this memory may be written if `D` is [`FromDisk`], read if it is [`ToDisk`].
///
/// # Examples
///
/// ```
/// use kernel::block::bio::{FromDisk, Segments};
///
/// /// Fills the first sector with ones, the rest with zeros.
/// fn serve(mut memory: Segments<'_, FromDisk>) {
///     memory.take_bytes(512).fill(0xff);
///     memory.fill(0);
/// }
/// ```
///
/// [`ToDisk`]: super::ToDisk
pub struct Segments<'a, D: Direction> {
    bio: *const bindings::bio,
    /// Bytes left in `bio`.
    in_bio: u32,
    /// Bytes left to be returned, in this bio or later ones.
    remaining: u32,
    index: u32,
    done: u32,
    _borrow: PhantomData<(&'a (), D)>,
}

// Not derived, because `D` is never a value.
impl<D: Direction> Clone for Segments<'_, D> {
    #[inline]
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, D: Direction> Segments<'a, D> {
    /// Starts at the first of `bytes` bytes of a list of bios.
    ///
    /// # Safety
    ///
    /// During `'a`, `bio` must be null or point to the first bio of a list that stays as it is,
    /// each of which has an array of ranges that is as long as its iterator says. The memory must
    /// be valid during `'a`, to be written if `D` is [`FromDisk`], to be read otherwise.
    #[inline]
    pub(crate) unsafe fn from_raw(bio: *const bindings::bio, bytes: u32) -> Self {
        let mut all = Self {
            bio,
            in_bio: 0,
            remaining: bytes,
            index: 0,
            done: 0,
            _borrow: PhantomData,
        };
        all.enter(bio);
        all
    }

    /// The number of bytes that are left.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// fn half<D: Direction>(mut data: Segments<'_, D>) -> Segments<'_, D> {
    ///     let bytes = data.remaining() / 2;
    ///     data.take_bytes(bytes)
    /// }
    /// ```
    #[inline]
    pub fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Splits off the next `bytes` bytes, or all that are left if these are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// /// Leaves the first sector out.
    /// fn after_header<D: Direction>(mut data: Segments<'_, D>) -> Segments<'_, D> {
    ///     let _header = data.take_bytes(512);
    ///     data
    /// }
    /// ```
    pub fn take_bytes(&mut self, bytes: u32) -> Self {
        let bytes = bytes.min(self.remaining);
        let mut first = self.clone();
        first.remaining = bytes;
        self.skip_bytes(bytes);
        first
    }

    /// Leaves out the next `bytes` bytes, or all that are left if these are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// /// The last sector of the request.
    /// fn last<D: Direction>(mut data: Segments<'_, D>) -> Segments<'_, D> {
    ///     let before = data.remaining().saturating_sub(512);
    ///     data.skip_bytes(before);
    ///     data
    /// }
    /// ```
    pub fn skip_bytes(&mut self, bytes: u32) {
        let mut left = bytes.min(self.remaining);
        while left > 0 {
            let Some((_, _, most)) = self.range() else {
                break;
            };
            let len = left.min(most);
            self.advance(len);
            left -= len;
        }
    }

    /// The element of the array of this bio that the iterator is at.
    ///
    /// # Safety
    ///
    /// `in_bio` is not 0.
    #[inline]
    unsafe fn element(&self) -> bindings::bio_vec {
        // SAFETY: By the type invariants the bio stays as it is, and is not null, since it has
        // bytes left.
        let array = unsafe { (*self.bio).bi_io_vec };
        // SAFETY: By the type invariants those bytes are in the array from this element on, so the
        // element exists.
        let element = unsafe { array.add(self.index as usize) };
        // SAFETY: As above.
        unsafe { *element }
    }

    /// Finds the range that the next byte is in, how many of its bytes are done, and how many more
    /// of them there are; [`None`] if there is no byte left.
    #[inline]
    pub(super) fn range(&mut self) -> Option<(bindings::bio_vec, u32, u32)> {
        if self.remaining == 0 {
            return None;
        }
        if self.in_bio == 0 {
            self.next_bio()?;
        }
        loop {
            // SAFETY: There is a byte left in this bio.
            let range = unsafe { self.element() };
            if self.done < range.bv_len {
                let left = (range.bv_len - self.done).min(self.in_bio);
                return Some((range, self.done, left.min(self.remaining)));
            }
            // Used up, or empty from the start.
            self.index = self.index.wrapping_add(1);
            self.done = 0;
        }
    }

    /// The range that all of the next `len` bytes are in, with how many of its bytes are done, and
    /// what is left after these; [`None`] if that takes a look at another range, or `len` is 0.
    #[inline]
    pub(super) fn range_of(&self, len: u32) -> Option<(bindings::bio_vec, u32, Self)> {
        if len == 0 {
            return None;
        }
        // INVARIANT: As many bytes fewer are left as are passed, if the range has as many.
        let rest = Self {
            in_bio: self.in_bio.checked_sub(len)?,
            remaining: self.remaining.checked_sub(len)?,
            done: self.done.wrapping_add(len),
            ..*self
        };
        // SAFETY: There are bytes left in this bio, since `len`, which is not 0, could be taken off
        // their number.
        let range = unsafe { self.element() };
        let end = u64::from(self.done) + u64::from(len);
        (end <= u64::from(range.bv_len)).then_some((range, self.done, rest))
    }

    /// Goes to the start of the next bio that has bytes; [`None`] if there is none.
    #[inline(never)]
    fn next_bio(&mut self) -> Option<()> {
        while self.in_bio == 0 {
            if self.bio.is_null() {
                self.remaining = 0;
                return None;
            }
            // SAFETY: By the type invariants the bio, which is not null, stays as it is.
            self.enter(unsafe { (*self.bio).bi_next });
        }
        Some(())
    }

    /// Goes to the start of a bio, which is the first of the list or the next.
    #[inline]
    fn enter(&mut self, bio: *const bindings::bio) {
        // INVARIANT: The iterator says where the bio's bytes start, and how many there are.
        self.bio = bio;
        if !bio.is_null() {
            // SAFETY: By the type invariants the bio, which is not null, stays as it is.
            let at = unsafe { (*bio).bi_iter };
            self.in_bio = at.bi_size;
            self.index = at.bi_idx;
            self.done = at.bi_offset;
        }
    }

    /// Moves on by `len` bytes, all of which are in the range that [`Self::range`] found.
    #[inline]
    pub(super) fn advance(&mut self, len: u32) {
        // INVARIANT: As many bytes fewer are left as were passed.
        self.done = self.done.wrapping_add(len);
        self.in_bio -= len;
        self.remaining -= len;
    }
}

impl<'a, D: Direction> Iterator for Segments<'a, D> {
    type Item = Segment<'a, D>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (range, done, left) = self.range()?;
        // Within the range, which may span many pages.
        let at = range.bv_offset as usize + done as usize;
        let (page, offset) = (at >> PAGE_SHIFT, at & (PAGE_SIZE - 1));
        let len = left.min((PAGE_SIZE - offset) as u32);
        self.advance(len);
        // SAFETY: The pages of a range are neighbours in the kernel's map of pages, and this one
        // holds a byte of the range.
        let page = unsafe { range.bv_page.add(page) };
        // SAFETY: As above, the pointer is that of a page.
        let page = unsafe { NonNull::new_unchecked(page) };
        // SAFETY: By the type invariants the page stays allocated during `'a`; `len` was limited to
        // its end.
        let bytes = unsafe { BvecPage::new(page, offset, len as usize) };
        // SAFETY: The submitter has lent the bytes to the request, in the direction of the type.
        Some(unsafe { Segment::new(bytes) })
    }
}

impl Segments<'_, FromDisk> {
    /// Sets all bytes that are left to `byte`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{FromDisk, Segments};
    ///
    /// fn zeros(mut memory: Segments<'_, FromDisk>) {
    ///     memory.fill(0);
    ///     assert_eq!(memory.remaining(), 0);
    /// }
    /// ```
    pub fn fill(&mut self, byte: u8) {
        for segment in self {
            segment.fill(byte);
        }
    }
}

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
    unsafe fn bytes<'a, D: Direction>(&self) -> MappedBytes<'a, D> {
        if !D::FILLS {
            self.flush(self.len);
        }
        // SAFETY: By the type invariants and the safety requirement.
        unsafe { MappedBytes::new(self.start.cast(), self.len) }
    }

    /// To be called when the first `len` bytes were filled, or read.
    #[inline(always)]
    fn finish<D: Direction>(&self, len: usize) {
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
    fn visit(self, bytes: MappedBytes<'_, D>) -> Result;
}

impl<D: Direction> Segments<'_, D> {
    /// Lends the next bytes, as many as can be addressed at once but at most `max`, then leaves out
    /// what `f` took of them. Without a byte left, `f` is not called and [`None`] returned.
    #[inline(always)]
    pub(crate) fn with_mapped<R>(
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
        let mut bytes = unsafe { mapped.bytes() };
        let result = f(&mut bytes);
        let taken = len.saturating_sub(bytes.len());
        mapped.finish::<D>(taken);
        // It is no more than was left in the range.
        self.advance(taken as u32);
        Some(result)
    }

    /// Lends the next `len` bytes to `user` and leaves them out, unless it fails; [`None`] if they
    /// cannot be addressed at once.
    #[inline(always)]
    pub(crate) fn visit_mapped(
        &mut self,
        len: u32,
        visitor: impl SegmentVisitor<D>,
    ) -> Option<Result> {
        let (range, done, rest) = self.range_of(len)?;
        // SAFETY: The range has `len` more bytes, which stay there while `self` is borrowed.
        let mapped = unsafe { Mapped::new(range, done, len as usize) };
        if mapped.len < len as usize {
            return None;
        }
        // SAFETY: The direction is that of the type. `user` gives the window back: it takes one of
        // any lifetime, so cannot keep it.
        let result = visitor.visit(unsafe { mapped.bytes() });
        if result.is_ok() {
            mapped.finish::<D>(len as usize);
            *self = rest;
        }
        Some(result)
    }

    /// Runs `f` on what is left, for what is called seldom. As `f` gets a copy, `self` itself need
    /// have no address, and may be in registers else.
    #[inline(always)]
    pub(crate) fn with_copy<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let mut copy = self.clone();
        let result = f(&mut copy);
        *self = copy;
        result
    }
}
