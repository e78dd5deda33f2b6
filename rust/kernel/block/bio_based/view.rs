// SPDX-License-Identifier: GPL-2.0

//! What a bio asks for.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h)

use super::{
    DiskData,
    Operations, //
};
use crate::{
    bindings,
    block::{
        limits,
        mq::Op,
        Sector,
        Sectors, //
    },
    types::Opaque, //
};
use core::marker::PhantomData;

/// A bio: C's `struct bio`.
///
/// # Examples
///
/// ```
/// use kernel::block::{bio_based::{Bio, Operations}, Sector};
///
/// fn end_of<T: Operations>(bio: &Bio<T>) -> Sector {
///     bio.sector() + bio.sectors()
/// }
/// ```
///
/// # Invariants
///
/// A reference exists only while the bio is owned by a handle that outlives the reference. The bio
/// is for a disk of `T`, whose queue is in use until the bio has ended.
#[repr(transparent)]
pub struct Bio<T: Operations> {
    raw: Opaque<bindings::bio>,
    _driver: PhantomData<fn(T)>,
}

/// A part of the work for a bio.
///
/// # Examples
///
/// ```
/// use kernel::block::{bio_based::{Operations, Step, SubmittedBio}, BlkResult};
///
/// fn serve<T: Operations>(
///     bio: &SubmittedBio<'_, T>,
///     flush: impl Fn() -> BlkResult,
///     transfer: impl Fn(&SubmittedBio<'_, T>) -> BlkResult,
/// ) -> BlkResult {
///     bio.steps().try_for_each(|step| match step {
///         Step::Flush => flush(),
///         Step::Transfer => transfer(bio),
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Write the cache of the disk to stable storage.
    Flush,
    /// Carry out the operation. If [`Bio::is_fua`], its data is on stable storage afterwards.
    Transfer,
}

impl<T: Operations> Bio<T> {
    /// Returns a pointer to C's bio.
    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::bio {
        self.raw.get()
    }

    /// Returns the operation. A bio that only asks for a flush is a write without data.
    #[inline]
    pub fn op(&self) -> Op {
        // The operation is the lowest byte.
        Op::from_raw(self.flags() as u8)
    }

    #[inline]
    fn flags(&self) -> bindings::blk_opf_t {
        // SAFETY: By the type invariant. Nothing else writes the field.
        unsafe { (*self.as_raw()).bi_opf }
    }

    #[inline]
    fn has(&self, flag: bindings::req_flag_bits) -> bool {
        self.flags() & (1 << flag) != 0
    }

    /// Returns whether the bio asks for a flush, or for its data to be on stable storage. Otherwise
    /// it has no [steps](Self::steps) but the transfer.
    #[inline]
    pub fn is_flush(&self) -> bool {
        self.is_preflush() || self.has(bindings::req_flag_bits___REQ_FUA)
    }

    /// Returns whether the cache of the disk must be written to stable storage first.
    #[inline]
    pub fn is_preflush(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_PREFLUSH)
    }

    /// Returns whether the data must be written to stable storage at once: the disk supports that,
    /// and the bio asks for it.
    #[inline]
    pub fn is_fua(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_FUA) && self.disk_has_fua()
    }

    /// Returns whether the data must be written as a whole, or not at all if the power fails.
    #[inline]
    pub fn is_atomic(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_ATOMIC)
    }

    /// Returns whether the bio must fail with
    /// [`BlkStatus::AGAIN`](crate::block::BlkStatus::AGAIN) instead of waiting.
    #[inline]
    pub fn is_nowait(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_NOWAIT)
    }

    /// Returns the first sector.
    #[inline]
    pub fn sector(&self) -> Sector {
        // SAFETY: By the type invariant. Nothing else writes the field.
        Sector(unsafe { (*self.as_raw()).bi_iter.bi_sector })
    }

    /// Returns the length in sectors.
    #[inline]
    pub fn sectors(&self) -> Sectors {
        Sectors::from_bytes(u64::from(self.bytes()))
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn bytes(&self) -> u32 {
        // SAFETY: By the type invariant. Nothing else writes the field.
        unsafe { (*self.as_raw()).bi_iter.bi_size }
    }

    /// Returns the parts of the work for the bio, in order. If one fails, the next ones are left
    /// out.
    ///
    /// There is a flush before the transfer if the bio asks for it, and after it if the bio asks
    /// for FUA, which the disk does not support. A bio without data has no transfer.
    #[inline]
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let before = self.is_preflush();
        let transfer = self.bytes() != 0 || self.op() != Op::Write;
        let after = self.has(bindings::req_flag_bits___REQ_FUA) && !self.disk_has_fua();
        [
            before.then_some(Step::Flush),
            transfer.then_some(Step::Transfer),
            after.then_some(Step::Flush),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns the queue of the disk.
    #[inline]
    pub(super) fn queue(&self) -> *mut bindings::request_queue {
        // SAFETY: By the type invariant. Nothing else writes the field.
        let part = unsafe { (*self.as_raw()).bi_bdev };
        // SAFETY: By the type invariant, the bio is for a disk, which has a queue.
        unsafe { (*part).bd_queue }
    }

    #[inline]
    fn disk_has_fua(&self) -> bool {
        // SAFETY: By the type invariant, the queue is in use, so its limits do not change.
        limits::has_fua(unsafe { (*self.queue()).limits.features })
    }

    /// Returns the driver data of the disk.
    #[inline]
    pub fn queue_data(&self) -> &T::QueueData {
        // SAFETY: By the type invariant, it is the queue of a disk of `T`, whose data is not
        // dropped before the bio has ended.
        unsafe { DiskData::<T>::of_queue(self.queue()) }.data()
    }
}
