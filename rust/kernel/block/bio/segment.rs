// SPDX-License-Identifier: GPL-2.0

//! A run of a request's bytes within one page, with the direction that they may be copied in.

use super::bvec_page::BvecPage;
use crate::prelude::*;
use core::marker::PhantomData;

mod sealed {
    pub trait Sealed {
        /// Whether the driver fills the memory.
        const FILLS: bool;
    }
}

/// Which way the bytes of a request go: [`FromDisk`] or [`ToDisk`].
///
/// # Examples
///
/// ```
/// use kernel::block::bio::{Direction, Segments};
///
/// /// Counts the pages that a request touches, whatever it does with them.
/// fn pages<D: Direction>(data: Segments<'_, D>) -> usize {
///     data.count()
/// }
/// ```
pub trait Direction: sealed::Sealed {}

/// The bytes of a read, which the driver writes to memory.
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::{FromDisk, Segment}, prelude::*};
///
/// fn stamp(memory: &Segment<'_, FromDisk>) -> Result {
///     memory.write(0, b"rnull")
/// }
/// ```
pub enum FromDisk {}

/// The bytes of a write, which the driver reads from memory and must leave as they are.
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::{Segment, ToDisk}, prelude::*};
///
/// fn stamp(memory: &Segment<'_, ToDisk>) -> Result<[u8; 5]> {
///     let mut bytes = [0; 5];
///     memory.read(0, &mut bytes)?;
///     Ok(bytes)
/// }
/// ```
pub enum ToDisk {}

impl sealed::Sealed for FromDisk {
    const FILLS: bool = true;
}
impl sealed::Sealed for ToDisk {
    const FILLS: bool = false;
}
impl Direction for FromDisk {}
impl Direction for ToDisk {}

/// A run of a request's bytes within one page.
///
/// It has at least one byte and may start and end anywhere, within a sector too. It is lent by the
/// request, so it cannot outlive it, and stays on the task that got it.
///
/// # Invariants
///
/// `piece` belongs to the memory of a request that does not end during `'a`, and that memory may be
/// written if `D` is [`FromDisk`], read if it is [`ToDisk`].
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::{Segments, ToDisk}, prelude::*};
///
/// /// Adds up the first byte of each segment.
/// fn sum(data: Segments<'_, ToDisk>) -> Result<u32> {
///     let mut sum = 0;
///     for segment in data {
///         let mut byte = [0];
///         segment.read(0, &mut byte)?;
///         sum += u32::from(byte[0]);
///     }
///     Ok(sum)
/// }
/// ```
pub struct Segment<'a, D: Direction> {
    piece: BvecPage<'a>,
    _direction: PhantomData<D>,
}

impl<'a, D: Direction> Segment<'a, D> {
    /// Wraps a run of bytes.
    ///
    /// # Safety
    ///
    /// `piece` must belong to the memory of a request that does not end during `'a`, and that may
    /// be written if `D` is [`FromDisk`], read if it is [`ToDisk`].
    #[inline]
    pub(super) unsafe fn new(piece: BvecPage<'a>) -> Self {
        // INVARIANT: The caller promises it.
        Self {
            piece,
            _direction: PhantomData,
        }
    }

    /// The number of bytes, from 1 to `PAGE_SIZE`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{Direction, Segments};
    ///
    /// fn longest<D: Direction>(data: Segments<'_, D>) -> usize {
    ///     data.map(|segment| segment.size()).max().unwrap_or(0)
    /// }
    /// ```
    #[inline]
    pub fn size(&self) -> usize {
        self.piece.len()
    }
}

impl Segment<'_, ToDisk> {
    /// Copies the bytes from `at` on into `to`.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the segment ends before `to` is full; nothing is copied then.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::bio::{Segment, ToDisk}, prelude::*};
    ///
    /// fn last_byte(segment: &Segment<'_, ToDisk>) -> Result<u8> {
    ///     let mut byte = [0];
    ///     segment.read(segment.size() - 1, &mut byte)?;
    ///     Ok(byte[0])
    /// }
    /// ```
    #[inline]
    pub fn read(&self, at: usize, to: &mut [u8]) -> Result {
        self.piece.flush();
        self.piece.read(at, to)
    }
}

impl Segment<'_, FromDisk> {
    /// Copies `from` over the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the segment ends before `from` does; nothing is copied then.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::bio::{FromDisk, Segment}, prelude::*};
    ///
    /// fn mark_end(segment: &Segment<'_, FromDisk>) -> Result {
    ///     segment.write(segment.size() - 1, &[0x55])
    /// }
    /// ```
    #[inline]
    pub fn write(&self, at: usize, from: &[u8]) -> Result {
        // This flushes the page after the copy.
        self.piece.write(at, from)
    }

    /// Sets all bytes of the segment to `byte`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::bio::{FromDisk, Segments};
    ///
    /// /// Gives each page another value.
    /// fn stripe(data: Segments<'_, FromDisk>) {
    ///     for (segment, byte) in data.zip((0..=255).cycle()) {
    ///         segment.fill(byte);
    ///     }
    /// }
    /// ```
    #[inline]
    pub fn fill(&self, byte: u8) {
        self.piece.fill(byte);
        self.piece.flush();
    }
}
