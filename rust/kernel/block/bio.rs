// SPDX-License-Identifier: GPL-2.0

//! The data of a started request, or of a bio.
//!
//! A read or write request refers to memory through a list of `struct bio`, each with an array of
//! `struct bio_vec`. The pages belong to the submitter, often to a process that keeps using them.
//! [`Transfer`] gives the direction, [`Segments`] iterates over the memory in order, and a
//! [`Segment`] is a range of bytes within one page.
//!
//! The types guarantee:
//!
//! * They borrow from the started request, or from the bio, which cannot end while one of them
//!   exists.
//! * The direction is part of the type: the memory of a write request is never written to.
//! * No Rust reference to the memory is created, because its owner may change it at any time. Bytes
//!   are copied to or from buffers of the driver. If the owner changes the memory during the copy,
//!   the result is a mixture of old and new bytes, as with every other driver.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use crate::bindings;

mod segments;

mod segment;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[doc(hidden)]
pub mod fake_request;
#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;

pub use self::{
    segment::{
        Direction,
        FromDisk,
        MappedBytes,
        Segment,
        ToDisk, //
    },
    segments::{
        Contiguous,
        Segments, //
    },
};

/// The data transfer of a started request, or of a bio.
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::Transfer, prelude::*};
///
/// /// Serves a disk that reads as zeros.
/// fn serve(transfer: Transfer<'_>) -> Result {
///     match transfer {
///         Transfer::FromDisk(mut memory) => memory.fill(0),
///         Transfer::ToDisk(_) => return Err(EIO),
///         Transfer::None => (),
///     }
///     Ok(())
/// }
/// assert!(serve(Transfer::None).is_ok());
/// ```
pub enum Transfer<'a> {
    /// A read, or [`DriverIn`](super::mq::Op::DriverIn): the driver fills this memory.
    FromDisk(Segments<'a, FromDisk>),
    /// A write, a zone append, or [`DriverOut`](super::mq::Op::DriverOut): the driver stores the
    /// content of this memory.
    ToDisk(Segments<'a, ToDisk>),
    /// Any other operation, such as a flush or discard, which has no memory.
    None,
}

impl Transfer<'_> {
    /// Returns the data transfer of a request.
    ///
    /// # Safety
    ///
    /// `rq` must point to a request that was started and that does not end during the lifetime of
    /// the result.
    #[inline]
    pub(crate) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // SAFETY: By the safety requirement. The operation does not change between the start of the
        // request and its end.
        let flags = unsafe { (*rq).cmd_flags };
        // SAFETY: As above, for the length.
        let bytes = unsafe { (*rq).__data_len };
        // SAFETY: As above, for the list of bios.
        let bio = unsafe { (*rq).bio };
        // SAFETY: By the safety requirement, these are the bios of a request with this operation.
        unsafe { Self::new(flags, bio, bytes) }
    }

    /// Returns the data transfer of a single bio.
    ///
    /// # Safety
    ///
    /// `bio` must point to a bio that does not end during the lifetime of the result.
    #[inline]
    pub(crate) unsafe fn from_bio(bio: *const bindings::bio) -> Self {
        // SAFETY: By the safety requirement. The operation does not change.
        let flags = unsafe { (*bio).bi_opf };
        // SAFETY: As above, for the length.
        let bytes = unsafe { (*bio).bi_iter.bi_size };
        // SAFETY: By the safety requirement. The bio itself has all of the bytes, so those that may
        // follow it in a list are not used.
        unsafe { Self::new(flags, bio, bytes) }
    }

    /// Returns the data transfer of `bytes` bytes of a list of bios with the operation in `flags`.
    ///
    /// # Safety
    ///
    /// The bios with the first `bytes` bytes do not end during the lifetime of the result.
    #[inline]
    unsafe fn new(flags: bindings::blk_opf_t, bio: *const bindings::bio, bytes: u32) -> Self {
        const OP_MASK: u32 = (1 << bindings::REQ_OP_BITS) - 1;

        match flags & OP_MASK {
            bindings::req_op_REQ_OP_READ => {
                // SAFETY: The bios of a read describe memory that may be written until the request
                // ends.
                Self::FromDisk(unsafe { Segments::from_raw(bio, bytes) })
            }
            bindings::req_op_REQ_OP_WRITE | bindings::req_op_REQ_OP_ZONE_APPEND => {
                // SAFETY: The bios of a write describe memory that may be read until the request
                // ends.
                Self::ToDisk(unsafe { Segments::from_raw(bio, bytes) })
            }
            bindings::req_op_REQ_OP_DRV_IN if bytes != 0 => {
                // SAFETY: As for a read.
                Self::FromDisk(unsafe { Segments::from_raw(bio, bytes) })
            }
            bindings::req_op_REQ_OP_DRV_OUT if bytes != 0 => {
                // SAFETY: As for a write.
                Self::ToDisk(unsafe { Segments::from_raw(bio, bytes) })
            }
            _ => Self::None,
        }
    }
}
