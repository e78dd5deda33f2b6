// SPDX-License-Identifier: GPL-2.0

//! The data of a started request.
//!
//! A read or write request points to memory: a list of `struct bio`, each with an array of ranges
//! of bytes, spread over pages that the driver does not own, often those of a process that goes on
//! using them. [`Transfer`] says which way the bytes go, [`Segments`] walks over them in order, and
//! a [`Segment`] is a run of them within one page.
//!
//! What the types see to:
//!
//! * They are lent by the started request, so the request cannot end while one of them exists.
//! * The direction is part of the type: the memory of a write request is never written to.
//! * No reference to the memory is ever made, because its owner may change it at any time; bytes
//!   are copied to or from buffers of the driver. What a racing owner gets, or gives us, is some
//!   mixture of bytes, as with every other driver.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use crate::bindings;

mod segments;

mod segment;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
pub(crate) mod fake_request;
#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;

pub(crate) use self::{
    segment::MappedBytes, //
    segments::SegmentVisitor,
};
pub use self::{
    segment::{
        Direction,
        FromDisk,
        Segment,
        ToDisk, //
    },
    segments::Segments,
};

/// What a started request wants to be done with its memory.
///
/// # Examples
///
/// ```
/// use kernel::{block::bio::Transfer, prelude::*};
///
/// /// A disk full of zeros.
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
    /// A read: fill this memory.
    FromDisk(Segments<'a, FromDisk>),
    /// A write or zone append: store what this memory holds.
    ToDisk(Segments<'a, ToDisk>),
    /// Anything else, such as a flush or discard: there is no memory.
    None,
}

impl Transfer<'_> {
    /// Looks at the memory of a request.
    ///
    /// # Safety
    ///
    /// `rq` must point to a request that was started and that does not end during the lifetime of
    /// what this returns.
    #[inline]
    pub(crate) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        const OP_MASK: u32 = (1 << bindings::REQ_OP_BITS) - 1;

        // SAFETY: By the safety requirement. The operation stays as it is from the start of the
        // request to its end.
        let flags = unsafe { (*rq).cmd_flags };
        // SAFETY: As above, of the length.
        let bytes = unsafe { (*rq).__data_len };
        // SAFETY: As above, of the list of bios.
        let bio = unsafe { (*rq).bio };
        match flags & OP_MASK {
            bindings::req_op_REQ_OP_READ => {
                // SAFETY: The bios of a read describe memory to be written until the request ends.
                Self::FromDisk(unsafe { Segments::from_raw(bio, bytes) })
            }
            bindings::req_op_REQ_OP_WRITE | bindings::req_op_REQ_OP_ZONE_APPEND => {
                // SAFETY: The bios of a write describe memory to be read until the request ends.
                Self::ToDisk(unsafe { Segments::from_raw(bio, bytes) })
            }
            _ => Self::None,
        }
    }
}
