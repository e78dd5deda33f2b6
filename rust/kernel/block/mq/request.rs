// SPDX-License-Identifier: GPL-2.0

//! A request in any state.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    disk_data::DiskData,
    pdu::{
        RequestPdu,
        Timer, //
    },
    HwQueue,
    Operations, //
};
use crate::{
    bindings,
    block::{
        Sector,
        Sectors, //
    },
    prelude::*,
    trace::TraceArg,
    types::Opaque, //
};
use core::{
    mem::offset_of,
    ptr::NonNull, //
};

/// The operation of a request or bio: C's `enum req_op`.
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::Op, BlkResult, BlkStatus};
///
/// fn is_supported(op: Op) -> BlkResult {
///     match op {
///         Op::Read | Op::Write | Op::Flush => Ok(()),
///         _ => Err(BlkStatus::NOTSUPP),
///     }
/// }
///
/// assert!(is_supported(Op::Flush).is_ok());
/// assert_eq!(is_supported(Op::Discard), Err(BlkStatus::NOTSUPP));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Op {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Write the cache of the disk to stable storage.
    Flush,
    /// Discard sectors.
    Discard,
    /// Discard sectors so that their content cannot be recovered.
    SecureErase,
    /// Write zeroes to sectors.
    WriteZeroes,
    /// Write sectors at the write pointer of the zone that [`Request::sector`] is in. The driver
    /// returns their position by
    /// [`set_append_sector`](super::StartedRequest::set_append_sector).
    ZoneAppend,
    /// Open the zone that begins at [`Request::sector`]. Fails with
    /// [`BlkStatus::ZONE_OPEN_RESOURCE`] or [`BlkStatus::ZONE_ACTIVE_RESOURCE`] if too many are
    /// open or active, as the first write to a zone does.
    ///
    /// [`BlkStatus::ZONE_OPEN_RESOURCE`]: crate::block::BlkStatus::ZONE_OPEN_RESOURCE
    /// [`BlkStatus::ZONE_ACTIVE_RESOURCE`]: crate::block::BlkStatus::ZONE_ACTIVE_RESOURCE
    ZoneOpen,
    /// Close the zone that begins at [`Request::sector`].
    ZoneClose,
    /// Transition the zone that begins at [`Request::sector`] to full.
    ZoneFinish,
    /// Reset the write pointer of the zone that begins at [`Request::sector`].
    ZoneReset,
    /// Reset the write pointers of all zones.
    ZoneResetAll,
    /// A command of the driver, which writes to the memory of the request, if there is any: a
    /// [`Passthrough`](super::Passthrough) request. Its sector is of no meaning.
    DriverIn,
    /// A command of the driver, which reads the memory of the request.
    DriverOut,
    /// Any other operation.
    Other(u8),
}

impl Op {
    #[inline]
    pub(crate) fn from_raw(op: u8) -> Self {
        match u32::from(op) {
            bindings::req_op_REQ_OP_READ => Self::Read,
            bindings::req_op_REQ_OP_WRITE => Self::Write,
            bindings::req_op_REQ_OP_FLUSH => Self::Flush,
            bindings::req_op_REQ_OP_DISCARD => Self::Discard,
            bindings::req_op_REQ_OP_SECURE_ERASE => Self::SecureErase,
            bindings::req_op_REQ_OP_WRITE_ZEROES => Self::WriteZeroes,
            bindings::req_op_REQ_OP_ZONE_APPEND => Self::ZoneAppend,
            bindings::req_op_REQ_OP_ZONE_OPEN => Self::ZoneOpen,
            bindings::req_op_REQ_OP_ZONE_CLOSE => Self::ZoneClose,
            bindings::req_op_REQ_OP_ZONE_FINISH => Self::ZoneFinish,
            bindings::req_op_REQ_OP_ZONE_RESET => Self::ZoneReset,
            bindings::req_op_REQ_OP_ZONE_RESET_ALL => Self::ZoneResetAll,
            bindings::req_op_REQ_OP_DRV_IN => Self::DriverIn,
            bindings::req_op_REQ_OP_DRV_OUT => Self::DriverOut,
            _ => Self::Other(op),
        }
    }
}

/// A request: C's `struct request`, followed by the driver's PDU.
///
/// # Examples
///
/// ```
/// use kernel::block::{mq::{Operations, Request}, Sector};
///
/// fn end_of<T: Operations>(rq: &Request<T>) -> Sector {
///     rq.sector() + rq.sectors()
/// }
/// ```
///
/// # Invariants
///
/// A reference exists only while the request is owned by a handle that outlives the reference. The
/// request is one of a tag set of `T`, and belongs to a disk, or to a [`PassthroughQueue`]. What
/// the comments say of a disk holds for both, except that the queue of the second has no
/// `struct gendisk`.
///
/// [`PassthroughQueue`]: super::PassthroughQueue
#[repr(C)]
pub struct Request<T: Operations> {
    raw: Opaque<bindings::request>,
    pdu: RequestPdu<T>,
}

impl<T: Operations> Request<T> {
    /// Converts a pointer to C's request.
    #[inline]
    pub(super) fn cast_from(raw: *mut bindings::request) -> *mut Self {
        // C expects the PDU directly after `struct request`.
        const_assert!(offset_of!(Self, pdu) == size_of::<bindings::request>());
        // C aligns the allocation for `struct request` only.
        const_assert!(align_of::<Self>() == align_of::<bindings::request>());
        raw.cast()
    }

    /// Returns a pointer to the PDU of the request at `this`.
    ///
    /// # Safety
    ///
    /// `this` points to the allocation of a request.
    #[inline]
    pub(super) unsafe fn pdu_of(this: *mut Self) -> *mut RequestPdu<T> {
        // SAFETY: By the safety requirement, for the field projection.
        unsafe { &raw mut (*this).pdu }
    }

    /// Returns the request that contains `pdu`.
    ///
    /// # Safety
    ///
    /// `pdu` points to the PDU of a request.
    #[inline]
    pub(super) unsafe fn of_pdu(pdu: *const RequestPdu<T>) -> NonNull<Self> {
        // SAFETY: By the safety requirement, the result is in the same allocation.
        let this = unsafe { pdu.byte_sub(offset_of!(Self, pdu)) };
        // SAFETY: By the safety requirement, it is a request, hence not null.
        unsafe { NonNull::new_unchecked(this.cast::<Self>().cast_mut()) }
    }

    /// Returns a pointer to C's request.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::request {
        self.raw.get()
    }

    /// Returns the operation.
    #[inline]
    pub fn op(&self) -> Op {
        // The operation is the lowest byte.
        Op::from_raw(self.flags() as u8)
    }

    #[inline]
    fn flags(&self) -> bindings::blk_opf_t {
        // SAFETY: By the type invariant. Nothing else writes the field.
        unsafe { (*self.as_raw()).cmd_flags }
    }

    #[inline]
    fn has(&self, flag: bindings::req_flag_bits) -> bool {
        self.flags() & (1 << flag) != 0
    }

    /// Returns whether a write must reach stable storage before it ends.
    #[inline]
    pub fn is_fua(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_FUA)
    }

    /// Returns whether a power failure must leave all of a write on the disk, or nothing of it:
    /// C's `REQ_ATOMIC`.
    ///
    /// The block layer submits such a write only if the limits of the disk allow it at that time.
    /// A driver of a device that does not check them has to do so itself, as they may change
    /// before the request comes.
    #[inline]
    pub fn is_atomic(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_ATOMIC)
    }

    /// Returns whether the submitter has another way to do what it wants, so that a request that
    /// has failed should not be sent again: C's `blk_noretry_request()`.
    #[inline]
    pub fn is_failfast(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_FAILFAST_DEV)
            || self.has(bindings::req_flag_bits___REQ_FAILFAST_TRANSPORT)
            || self.has(bindings::req_flag_bits___REQ_FAILFAST_DRIVER)
    }

    /// Returns whether the request must fail with
    /// [`BlkStatus::AGAIN`](crate::block::BlkStatus::AGAIN) instead of waiting.
    #[inline]
    pub fn is_nowait(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_NOWAIT)
    }

    /// Returns whether a Write Zeroes request must not deallocate its sectors.
    #[inline]
    pub fn is_no_unmap(&self) -> bool {
        self.has(bindings::req_flag_bits___REQ_NOUNMAP)
    }

    /// Returns the first sector, which is of no meaning for [`Op::DriverIn`] and [`Op::DriverOut`].
    #[inline]
    pub fn sector(&self) -> Sector {
        // SAFETY: By the type invariant. Nothing writes the field but the owner of the request,
        // with exclusive access to it.
        Sector(unsafe { (*self.as_raw()).__sector })
    }

    /// Returns the length in sectors.
    #[inline]
    pub fn sectors(&self) -> Sectors {
        Sectors::from_bytes(u64::from(self.bytes()))
    }

    /// Returns the length in bytes: that of the data, or of the range to discard, erase or zero. It
    /// is zero for other operations, and after the request has ended.
    #[inline]
    pub fn bytes(&self) -> u32 {
        // SAFETY: By the type invariant. Nothing else writes the field.
        unsafe { (*self.as_raw()).__data_len }
    }

    /// Returns the number of segments, as the block layer counts them for
    /// [`QueueLimits::max_segments`]: the memory of the request, mapped for a device, has at most
    /// as many ranges. It is of no meaning for a request without memory.
    ///
    /// [`QueueLimits::max_segments`]: crate::block::limits::QueueLimits::max_segments
    #[inline]
    pub fn nr_phys_segments(&self) -> u16 {
        // SAFETY: By the type invariant. Nothing else writes the field.
        unsafe { (*self.as_raw()).nr_phys_segments }
    }

    /// Returns which bits may be set in the addresses of the gaps between segments: of the end of
    /// each segment but the last, and of the beginning of each segment but the first.
    ///
    /// The mask has the lowest bit that is set in any of these addresses, and all bits above it. It
    /// is zero if there is a single segment, or if no bit is set in these addresses.
    ///
    /// So a device that needs a [`QueueLimits::virt_boundary_mask`] can have the request if that
    /// mask and this one have no bit in common.
    ///
    /// [`QueueLimits::virt_boundary_mask`]: crate::block::limits::QueueLimits::virt_boundary_mask
    #[inline]
    pub fn phys_gap_mask(&self) -> usize {
        // SAFETY: By the type invariant. Nothing else writes the field.
        let bit = unsafe { (*self.as_raw()).phys_gap_bit };
        gap_mask(bit)
    }

    /// Returns the tag: a number that is unique among the requests in flight of the hardware queue,
    /// or of the tag set if all queues share the tags.
    #[inline]
    pub fn tag(&self) -> u32 {
        // SAFETY: By the type invariant. Nothing else writes the field.
        unsafe { (*self.as_raw()).tag as u32 }
    }

    /// Returns whether the request should be made to time out, by the `io-timeout-fail` attribute
    /// of the disk.
    ///
    /// Each call counts as an attempt for the fault injection. Without `CONFIG_FAIL_IO_TIMEOUT` the
    /// result is always false.
    #[inline]
    pub fn should_fake_timeout(&self) -> bool {
        // SAFETY: By the type invariant, the request has a queue, of which alone C reads a flag.
        cfg!(CONFIG_FAIL_IO_TIMEOUT) && unsafe { bindings::blk_fake_timeout(self.as_raw()) }
    }

    /// Returns the driver data of the request.
    #[inline]
    pub fn data(&self) -> &T::RequestData {
        self.pdu.data()
    }

    /// Returns the driver data of the disk.
    #[inline]
    pub fn queue_data(&self) -> &T::QueueData {
        // SAFETY: By the type invariant. Nothing else writes the field.
        let queue = unsafe { (*self.as_raw()).q };
        // SAFETY: By the type invariant, the request has a disk of this driver, which was built
        // with data of this type, and which is not removed before the request has ended.
        unsafe { DiskData::<T>::of_queue(queue) }.data()
    }

    /// Returns the hardware queue of the request.
    #[inline]
    pub fn hw_queue(&self) -> HwQueue<'_, T> {
        // SAFETY: By the type invariant, a request that the driver owns has a hardware queue, of a
        // disk of this driver. The disk is not removed before the request has ended.
        unsafe { HwQueue::of_request(self.as_raw()) }
    }
}

// SAFETY: By the type invariant, the request is owned by the driver for as long as the reference is
// valid, and belongs to a disk or a `PassthroughQueue`; such a request has a hardware queue.
unsafe impl<T: Operations> TraceArg for &Request<T> {
    type Raw = *mut bindings::request;

    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        self.as_raw()
    }
}

impl<T: Operations<Timer = Timer>> Request<T> {
    /// Returns the timer in the request.
    #[inline]
    pub(super) fn timer(&self) -> &Timer {
        self.pdu.timer()
    }
}

/// Returns the mask that `phys_gap_bit` of a request stands for: the number of the lowest bit, from
/// 1 on, or 0.
#[inline]
fn gap_mask(bit: u8) -> usize {
    match bit {
        0 => 0,
        bit => usize::MAX.checked_shl(u32::from(bit) - 1).unwrap_or(0),
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_request)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_mask_has_all_bits_from_the_lowest_gap_on() {
        assert_eq!(gap_mask(0), 0);
        assert_eq!(gap_mask(1), usize::MAX);
        assert_eq!(gap_mask(10), !511);
        assert_eq!(gap_mask(13) & 4095, 0);
        assert_eq!(gap_mask(u8::MAX), 0);
    }
}
