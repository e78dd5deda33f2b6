// SPDX-License-Identifier: GPL-2.0

//! The memory of a request as a sequence of segments.
//!
//! [`Segments`] is C's `rq_for_each_segment()`: it walks the list of bios, in each bio the array of
//! `struct bio_vec` from the position of its iterator, and in each `bio_vec` page by page. It works
//! on copies of the iterators, because completion needs the originals unchanged.
//!
//! C header: [`include/linux/bvec.h`](srctree/include/linux/bvec.h)

use super::segment::{
    BvecPage,
    Direction,
    FromDisk,
    MappedBytes,
    Segment,
    ToDisk, //
};
use crate::{
    bindings,
    error::{
        code::EINVAL,
        Result, //
    },
    ffi,
    folio::Folio,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
};
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};

/// The memory of a request, or the rest of it, as a sequence of [`Segment`]s.
///
/// It is an [`Iterator`] that borrows from the started request. The segments are in the order of
/// the sectors, and each is within one page. Their lengths add up to that of the request.
///
/// # Invariants
///
/// - While `in_bio` is not 0, `bio` points to a bio that does not change during `'a`, and whose
///   array has at least `in_bio` bytes from byte `done` of element `index` on.
/// - `next` is null or points to such a bio, the first of a list of such bios, with the number of
///   bytes that their own iterators give.
/// - All this memory may be written if `D` is [`FromDisk`], and read if it is [`ToDisk`].
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
    /// The bio that the next bytes are in, if it has any left.
    bio: *const bindings::bio,
    /// The bios after it. Before the first access to the memory, these are all.
    next: *const bindings::bio,
    /// Bytes left in `bio`.
    in_bio: u32,
    /// Bytes left to return, in this bio or later ones.
    remaining: u32,
    index: u32,
    done: u32,
    _borrow: PhantomData<(&'a (), D)>,
}

// Not derived, because that would require `D: Clone`.
impl<D: Direction> Clone for Segments<'_, D> {
    #[inline]
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, D: Direction> Segments<'a, D> {
    /// Creates the segments of the first `bytes` bytes of a list of bios.
    ///
    /// # Safety
    ///
    /// During `'a`, `bio` must be null or point to the first bio of a list that does not change,
    /// and the array of each bio must have the length that its iterator gives. The memory must be
    /// valid during `'a`, for writes if `D` is [`FromDisk`], for reads otherwise.
    // The position in the first bio is read when it is needed: what a driver does before then has
    // the registers to itself.
    #[inline]
    pub(crate) unsafe fn from_raw(bio: *const bindings::bio, bytes: u32) -> Self {
        // INVARIANT: No byte is left in a bio before the list.
        Self {
            bio: ptr::null(),
            next: bio,
            in_bio: 0,
            remaining: bytes,
            index: 0,
            done: 0,
            _borrow: PhantomData,
        }
    }

    /// Returns the number of bytes that are left.
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

    /// Splits off the next `bytes` bytes, or all bytes that are left if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// /// Skips the first sector.
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

    /// Drops all bytes but the next `bytes`, or none if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// /// Leaves out the last sector.
    /// fn before_trailer<D: Direction>(mut data: Segments<'_, D>) -> Segments<'_, D> {
    ///     data.truncate(data.remaining().saturating_sub(512));
    ///     data
    /// }
    /// ```
    #[inline]
    pub fn truncate(&mut self, bytes: u32) {
        self.remaining = self.remaining.min(bytes);
    }

    /// Skips the next `bytes` bytes, or all bytes that are left if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// /// Returns the last sector of the request.
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

    /// Returns the element of the array of this bio at the current position.
    ///
    /// # Safety
    ///
    /// `in_bio` is not 0.
    #[inline]
    unsafe fn element(&self) -> bindings::bio_vec {
        // SAFETY: By the type invariants the bio does not change, and it is not null, since it has
        // bytes left.
        let array = unsafe { (*self.bio).bi_io_vec };
        // SAFETY: By the type invariants those bytes start in this element of the array, so the
        // element exists.
        let element = unsafe { array.add(self.index as usize) };
        // SAFETY: As above.
        unsafe { *element }
    }

    /// Returns the `bio_vec` that contains the next byte, the offset of that byte in it, and the
    /// number of bytes from there. Returns [`None`] if no byte is left.
    #[inline]
    fn range(&mut self) -> Option<(bindings::bio_vec, u32, u32)> {
        if self.remaining == 0 {
            return None;
        }
        while self.in_bio == 0 {
            self.next_bio()?;
        }
        loop {
            // SAFETY: There is a byte left in this bio.
            let range = unsafe { self.element() };
            if self.done < range.bv_len {
                let left = (range.bv_len - self.done).min(self.in_bio);
                return Some((range, self.done, left.min(self.remaining)));
            }
            // The element is used up, or has no bytes at all.
            self.index = self.index.wrapping_add(1);
            self.done = 0;
        }
    }

    /// Returns the next `len` bytes, and the rest after them. Returns [`None`] if `len` is 0, or if
    /// the bytes are not all in one element of the current bio, or of the next one if that is used
    /// up.
    #[inline(always)]
    fn range_of(&self, len: usize) -> Option<(Contiguous<'a, D>, Self)> {
        let mut rest = self.clone();
        if rest.in_bio == 0 {
            rest.next_bio()?;
        }
        if len == 0 || len > rest.in_bio as usize {
            return None;
        }
        let len = len as u32;
        let remaining = rest.remaining.checked_sub(len)?;
        // SAFETY: There are bytes left in this bio, at least `len`, which is not 0.
        let range = unsafe { rest.element() };
        let start = rest.done;
        if u64::from(start) + u64::from(len) > u64::from(range.bv_len) {
            return None;
        }
        // INVARIANT: The number of bytes left decreases by the number skipped, which the `bio_vec`
        // has.
        rest.in_bio = rest.in_bio.wrapping_sub(len);
        rest.remaining = remaining;
        rest.done = start.wrapping_add(len);
        // INVARIANT: The `bio_vec` has the bytes. By the type invariants, they can be accessed.
        let bytes = Contiguous {
            range,
            done: start,
            len: len as usize,
            _borrow: PhantomData,
        };
        Some((bytes, rest))
    }

    /// Moves to the start of the next bio, which may have no bytes. Returns [`None`] at the end of
    /// the list.
    #[inline]
    fn next_bio(&mut self) -> Option<()> {
        let Some(bio) = NonNull::new(self.next.cast_mut()) else {
            self.remaining = 0;
            return None;
        };
        let bio = bio.as_ptr().cast_const();
        // SAFETY: By the type invariants the bio does not change.
        let at = unsafe { (*bio).bi_iter };
        // INVARIANT: The bio's iterator gives the position and the number of its bytes.
        self.bio = bio;
        self.in_bio = at.bi_size;
        self.index = at.bi_idx;
        self.done = at.bi_offset;
        // SAFETY: As above.
        self.next = unsafe { (*bio).bi_next };
        Some(())
    }

    /// Advances by `len` bytes, all of which must be in the `bio_vec` that [`Self::range`]
    /// returned.
    #[inline]
    fn advance(&mut self, len: u32) {
        // INVARIANT: The number of bytes left decreases by the number skipped.
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
        // Offset from the first page: a `bio_vec` may span many pages.
        let at = range.bv_offset as usize + done as usize;
        let (page, offset) = (at >> PAGE_SHIFT, at & (PAGE_SIZE - 1));
        let len = left.min((PAGE_SIZE - offset) as u32);
        self.advance(len);
        // SAFETY: The `struct page`s of a `bio_vec` are contiguous, and this page holds a byte of
        // it.
        let page = unsafe { range.bv_page.add(page) };
        // SAFETY: As above, the pointer is to a page, so it is not null.
        let page = unsafe { NonNull::new_unchecked(page) };
        // SAFETY: By the type invariants the page stays allocated during `'a`, and `len` was
        // limited to its end.
        let bytes = unsafe { BvecPage::new(page, offset, len as usize) };
        // SAFETY: The submitter gave the bytes to the request, which has not ended, to be accessed
        // in the direction of the type, as the type invariants say for `'a`.
        Some(unsafe { Segment::new(bytes) })
    }
}

impl Segments<'_, FromDisk> {
    /// Sets all remaining bytes to `byte`.
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

/// A mapping of bytes of a request, which is unmapped when this is dropped.
///
/// # Invariants
///
/// `start` is the address of the most recent mapping. It maps `len` bytes at offset `at` from the
/// start of `page`, the first of contiguous pages, which stay allocated during `'a`. The bytes may
/// be written if `D` is [`FromDisk`], and read if it is [`ToDisk`].
struct Mapped<'a, D: Direction> {
    page: *mut bindings::page,
    at: usize,
    start: *mut ffi::c_void,
    len: usize,
    _borrow: PhantomData<(&'a (), D)>,
}

impl<D: Direction> Mapped<'_, D> {
    /// Maps at most `len` bytes from byte `done` of a `bio_vec` on.
    ///
    /// # Safety
    ///
    /// The `bio_vec` must have that many bytes, and its pages must stay allocated while the result
    /// exists. They may be written if `D` is [`FromDisk`], and read otherwise. Mappings must be
    /// dropped in the reverse of the order in which they were created.
    #[inline(always)]
    unsafe fn new(range: bindings::bio_vec, done: u32, mut len: usize) -> Self {
        let (page, at) = (range.bv_page, range.bv_offset as usize + done as usize);
        // SAFETY: By the safety requirement. The helper sets `len` to the number of bytes that were
        // mapped.
        let start = unsafe { bindings::bio_map(page, at, &mut len) };
        // INVARIANT: The bytes were just mapped. The others are by the safety requirements.
        Self {
            page,
            at,
            start,
            len,
            _borrow: PhantomData,
        }
    }

    /// Returns the mapped bytes, to be filled or read.
    #[inline(always)]
    fn bytes(&self) -> MappedBytes<'_, D> {
        if !D::FILLS {
            self.flush(self.len);
        }
        // SAFETY: By the type invariants. The mapping exists while it is borrowed.
        unsafe { MappedBytes::new(self.start.cast(), self.len) }
    }

    /// Must be called after the first `len` bytes were filled or read.
    #[inline(always)]
    fn finish(&self, len: usize) {
        if D::FILLS {
            self.flush(len.min(self.len));
        }
    }

    /// Makes writes to the first `len` bytes visible through all mappings of their pages.
    #[inline(always)]
    fn flush(&self, len: usize) {
        // SAFETY: By the type invariants the pages are allocated, and the mapping has at least
        // `len` bytes.
        unsafe { bindings::bio_flush(self.page, self.at, len) };
    }
}

impl<D: Direction> Drop for Mapped<'_, D> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariant. No `MappedBytes` of the mapping is used any more.
        unsafe { bindings::bio_unmap(self.start) };
    }
}

/// Bytes of a request whose addresses are contiguous, from [`Segments::contiguous`].
///
/// Unlike [`MappedBytes`], they are mapped only when they are copied.
///
/// # Invariants
///
/// `range` has `len` bytes from byte `done` on. During `'a`, they may be written if `D` is
/// [`FromDisk`], and read if it is [`ToDisk`].
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::{Segments, ToDisk}, folio::Folio, prelude::*};
///
/// /// Copies memory to a folio, unless that takes more than one copy.
/// fn try_copy(memory: &Segments<'_, ToDisk>, to: &Folio) -> Result<bool> {
///     match memory.contiguous(memory.remaining() as usize) {
///         Some(bytes) => bytes.copy_to_folio(to, 0).map(|()| true),
///         None => Ok(false),
///     }
/// }
/// ```
pub struct Contiguous<'a, D: Direction> {
    range: bindings::bio_vec,
    done: u32,
    len: usize,
    _borrow: PhantomData<(&'a (), D)>,
}

impl<D: Direction> Contiguous<'_, D> {
    /// Maps the bytes from `at` on, as many as can be mapped at once.
    ///
    /// # Safety
    ///
    /// `at` must not be beyond the end. The result must be dropped before a mapping that is older
    /// than it.
    #[inline(always)]
    unsafe fn map(&self, at: usize) -> Mapped<'_, D> {
        let (done, left) = (self.done.wrapping_add(at as u32), self.len - at);
        // SAFETY: By the type invariants and the safety requirements, the `bio_vec` has `left` more
        // bytes, which stay allocated during `'a`, and are accessed in the direction of the type.
        unsafe { Mapped::new(self.range, done, left) }
    }

    /// Calls `copy` for each part of the bytes that can be mapped at once, with the number of bytes
    /// before it.
    #[cold]
    fn copy_parts(&self, mut copy: impl FnMut(usize, &MappedBytes<'_, D>) -> Result) -> Result {
        let mut at = 0;
        while at < self.len {
            // SAFETY: There are more bytes. The mapping is dropped at the end of the block.
            let mapped = unsafe { self.map(at) };
            copy(at, &mapped.bytes())?;
            mapped.finish(mapped.len);
            // At least one byte was mapped.
            at = at.saturating_add(mapped.len.max(1));
        }
        Ok(())
    }
}

impl Contiguous<'_, FromDisk> {
    /// Fills the bytes with those of a folio from `offset` on.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the folio has fewer. Some may have been copied.
    #[inline(always)]
    pub fn copy_from_folio<P: Send + Sync + 'static>(
        &self,
        folio: &Folio<P>,
        offset: usize,
    ) -> Result {
        // SAFETY: Zero is not beyond the end. The mapping is dropped in this function.
        let mapped = unsafe { self.map(0) };
        if mapped.len < self.len {
            drop(mapped);
            return self
                .copy_parts(|at, part| part.copy_from_folio(folio, offset.saturating_add(at)));
        }
        mapped.bytes().copy_from_folio(folio, offset)?;
        mapped.finish(self.len);
        Ok(())
    }
}

impl Contiguous<'_, ToDisk> {
    /// Copies the bytes to a folio, from `offset` on.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the folio has no room for them. Some may have been copied.
    #[inline(always)]
    pub fn copy_to_folio<P: Send + Sync + 'static>(
        &self,
        folio: &Folio<P>,
        offset: usize,
    ) -> Result {
        // SAFETY: As in `copy_from_folio`.
        let mapped = unsafe { self.map(0) };
        if mapped.len < self.len {
            drop(mapped);
            return self
                .copy_parts(|at, part| part.copy_to_folio(folio, offset.saturating_add(at)));
        }
        mapped.bytes().copy_to_folio(folio, offset)
    }
}

impl<'a, D: Direction> Segments<'a, D> {
    /// Calls `f` with the next bytes, as many as can be mapped at once but at most `max`, then
    /// skips those that `f` split off. If no byte is left, returns [`None`] without calling `f`.
    ///
    /// See [`MappedBytes`] for an example.
    #[inline(always)]
    pub fn with_mapped<R>(
        &mut self,
        max: usize,
        f: impl FnOnce(&mut MappedBytes<'_, D>) -> R,
    ) -> Option<R> {
        let (range, done, left) = self.range()?;
        // SAFETY: The `bio_vec` has `left` more bytes, which stay allocated while `self` is
        // borrowed, as does the result. They are accessed in the direction of the type.
        let mapped = unsafe { Mapped::<D>::new(range, done, max.min(left as usize)) };
        let len = mapped.len;
        if len == 0 {
            return None;
        }
        let mut bytes = mapped.bytes();
        let result = f(&mut bytes);
        let taken = len.saturating_sub(bytes.len());
        mapped.finish(taken);
        // `taken` is at most `left`.
        self.advance(taken as u32);
        Some(result)
    }

    /// Returns the next `len` bytes, without skipping them. Returns [`None`] if `len` is 0, or if
    /// there are fewer bytes, or if they are not contiguous.
    ///
    /// It may also return [`None`] behind bytes that were skipped, if these end where a range of
    /// the memory does. [`Self::copy_from_folio`] and the like have no such limits.
    #[inline(always)]
    pub fn contiguous(&self, len: usize) -> Option<Contiguous<'a, D>> {
        Some(self.range_of(len)?.0)
    }

    /// Calls `f` with the next `len` bytes piece by piece, and skips them. Each piece is as long as
    /// can be mapped at once. The first argument of `f` is the number of bytes before it.
    fn for_each_piece(
        &mut self,
        len: usize,
        mut f: impl FnMut(usize, &MappedBytes<'_, D>) -> Result,
    ) -> Result {
        let mut done = 0;
        while done < len {
            let copied = self.with_mapped(len - done, |bytes| {
                let len = bytes.len();
                let all = bytes.split_off(len).ok_or(EINVAL)?;
                f(done, &all).map(|()| len)
            });
            done += copied.ok_or(EINVAL)??;
        }
        Ok(())
    }

    /// Calls `f` with a copy of `self`, then stores the copy back. For slow paths: since `f` does
    /// not get the address of `self`, the compiler can keep `self` in registers elsewhere.
    #[inline(always)]
    fn with_copy<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let mut copy = self.clone();
        let result = f(&mut copy);
        *self = copy;
        result
    }
}

impl Segments<'_, FromDisk> {
    /// Fills the next `len` bytes with those of a folio from `offset` on, and skips them.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the folio, or the memory, has fewer. Some may have been copied.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::bio::{FromDisk, Segments}, folio::Folio, prelude::*};
    ///
    /// /// Serves a read of a disk of one page.
    /// fn read(page: &Folio, at: usize, mut to: Segments<'_, FromDisk>) -> Result {
    ///     to.copy_from_folio(page, at, to.remaining() as usize)
    /// }
    /// ```
    #[inline(always)]
    pub fn copy_from_folio<P: Send + Sync + 'static>(
        &mut self,
        folio: &Folio<P>,
        offset: usize,
        len: usize,
    ) -> Result {
        let Some((bytes, rest)) = self.range_of(len) else {
            return self.with_copy(|copy| copy.copy_pieces_from_folio(folio, offset, len));
        };
        bytes.copy_from_folio(folio, offset)?;
        *self = rest;
        Ok(())
    }

    #[cold]
    fn copy_pieces_from_folio<P: Send + Sync + 'static>(
        &mut self,
        folio: &Folio<P>,
        offset: usize,
        len: usize,
    ) -> Result {
        self.for_each_piece(len, |done, bytes| {
            bytes.copy_from_folio(folio, offset.saturating_add(done))
        })
    }

    /// Sets the next `len` bytes, or all if there are fewer, to zero, and skips them.
    pub fn zero(&mut self, len: usize) {
        // It ends early at the end of the memory only.
        let _ = self.for_each_piece(len, |_, bytes| {
            bytes.zero();
            Ok(())
        });
    }
}

impl Segments<'_, ToDisk> {
    /// Copies the next `len` bytes to a folio, from `offset` on, and skips them.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the folio has no room for them, or the memory has fewer. Some may have been
    /// copied.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::bio::{Segments, ToDisk}, folio::Folio, prelude::*};
    ///
    /// /// Serves a write to a disk of one page.
    /// fn write(page: &Folio, at: usize, mut from: Segments<'_, ToDisk>) -> Result {
    ///     from.copy_to_folio(page, at, from.remaining() as usize)
    /// }
    /// ```
    #[inline(always)]
    pub fn copy_to_folio<P: Send + Sync + 'static>(
        &mut self,
        folio: &Folio<P>,
        offset: usize,
        len: usize,
    ) -> Result {
        let Some((bytes, rest)) = self.range_of(len) else {
            return self.with_copy(|copy| copy.copy_pieces_to_folio(folio, offset, len));
        };
        bytes.copy_to_folio(folio, offset)?;
        *self = rest;
        Ok(())
    }

    #[cold]
    fn copy_pieces_to_folio<P: Send + Sync + 'static>(
        &mut self,
        folio: &Folio<P>,
        offset: usize,
        len: usize,
    ) -> Result {
        self.for_each_piece(len, |done, bytes| {
            bytes.copy_to_folio(folio, offset.saturating_add(done))
        })
    }
}
