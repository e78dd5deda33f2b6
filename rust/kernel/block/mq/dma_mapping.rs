// SPDX-License-Identifier: GPL-2.0

//! The mapping of a request's memory for a device.
//!
//! What is needed to undo it is in memory that the device does not see. That is nothing at all for
//! most machines without an IOMMU, where a request without a bounce buffer needs no unmapping.
//!
//! C's `dma_need_unmap()` can become true at any time, when the first bounce buffer of the device
//! is in use. So that is looked for after each segment was mapped: as long as there was none, that
//! segment has no bounce buffer, and its mapping does not need to be undone, now or later. C calls
//! the function for each segment, and once more when it unmaps, where a request that was mapped
//! before it became true has nothing recorded.
//!
//! C header: [`include/linux/blk-mq-dma.h`](srctree/include/linux/blk-mq-dma.h)

use crate::{
    bindings,
    block::{
        status,
        BlkResult,
        BlkStatus, //
    },
    dma::DmaAddress,
    error::to_result,
    prelude::*, //
};
use core::mem::MaybeUninit;

/// What has to be undone before the request ends.
///
/// # Invariants
///
/// It is that of a request and a device, for which each range is mapped, and not unmapped yet.
// This has no padding behind the tag, so it is moved word by word.
#[repr(u32)]
pub(super) enum DmaMapping {
    /// Nothing.
    Nothing,
    /// A single range.
    Single { len: u32, address: DmaAddress },
    /// A range in which an IOMMU combines all segments.
    Iova { len: u32, address: DmaAddress },
    /// The same, and there are bounce buffers.
    BouncedIova { len: u32, address: DmaAddress },
    /// Several ranges.
    List(KBox<Chunk>),
}

// One is stored for each request in flight.
const _: () = assert!(size_of::<DmaMapping>() <= 16);

const _: () = assert!(bindings::req_op_REQ_OP_READ == 0 && bindings::req_op_REQ_OP_WRITE == 1);

/// A range of addresses of the device.
#[derive(Clone, Copy)]
pub(super) struct Range {
    len: u32,
    address: DmaAddress,
}

/// The number of ranges that are allocated at once. A chunk has 256 bytes.
const CHUNK: usize = 15;

/// Some of the ranges of a request, followed by others.
pub(super) struct Chunk {
    ranges: [Range; CHUNK],
    used: usize,
    next: Option<KBox<Chunk>>,
}

/// C's `struct blk_dma_iter`, which is not larger: `rust/helpers/blk_dma.c` asserts that.
#[repr(C)]
struct Iter {
    address: DmaAddress,
    len: u32,
    _private: [u64; 14],
}

/// Returns whether requests with this operation transfer data.
#[inline]
fn has_data(flags: bindings::blk_opf_t) -> bool {
    const OP_MASK: u32 = (1 << bindings::REQ_OP_BITS) - 1;

    let op = flags & OP_MASK;
    // The first two are the most frequent.
    op <= bindings::req_op_REQ_OP_WRITE
        || matches!(
            op,
            bindings::req_op_REQ_OP_ZONE_APPEND
                | bindings::req_op_REQ_OP_DRV_IN
                | bindings::req_op_REQ_OP_DRV_OUT
        )
}

/// Returns whether a request has memory.
///
/// A special payload, which a driver of C may set instead of bios, does not exist here.
///
/// # Safety
///
/// The caller owns the request, which has not ended.
#[inline(always)]
unsafe fn has_memory(rq: *mut bindings::request) -> bool {
    // SAFETY: By the safety requirement. The field does not change while a driver owns the request.
    let flags = unsafe { (*rq).cmd_flags };
    // SAFETY: As above.
    let bio = unsafe { (*rq).bio };
    !bio.is_null() && has_data(flags)
}

impl DmaMapping {
    /// Maps the memory of a request, and calls `visit` with each range.
    ///
    /// The lengths of the ranges add up to that of the request. If this fails, nothing is mapped.
    ///
    /// # Safety
    ///
    /// The caller owns the request, which has not ended. The device has a DMA mask, and its driver
    /// is bound until this returns.
    #[inline(always)]
    pub(super) unsafe fn new(
        rq: *mut bindings::request,
        dev: *mut bindings::device,
        mut visit: impl FnMut(DmaAddress, u32) -> BlkResult,
    ) -> BlkResult<Self> {
        // SAFETY: By the safety requirement.
        if !unsafe { has_memory(rq) } {
            // INVARIANT: Nothing is mapped.
            return Ok(Self::Nothing);
        }
        // SAFETY: As above.
        match unsafe { Self::single(rq, dev, &mut visit) } {
            Ok((this, ())) => return Ok(this),
            Err(Some(status)) => return Err(status),
            Err(None) => (),
        }
        // SAFETY: As above. The request has memory.
        unsafe { Self::segments(rq, dev, visit) }
    }

    /// Maps the memory of a request that has a single segment, and calls `visit` with the range,
    /// whose length is that of the request.
    ///
    /// # Errors
    ///
    /// [`None`] if the memory is not a single range that can be mapped so. Nothing is mapped then,
    /// nor after another error.
    ///
    /// # Safety
    ///
    /// The caller owns the request, which has not ended. The device has a DMA mask, and its driver
    /// is bound until this returns.
    #[inline(always)]
    pub(super) unsafe fn single<R>(
        rq: *mut bindings::request,
        dev: *mut bindings::device,
        visit: impl FnOnce(DmaAddress, u32) -> BlkResult<R>,
    ) -> core::result::Result<(Self, R), Option<BlkStatus>> {
        // SAFETY: By the safety requirement. The field does not change while a driver owns the
        // request.
        let segments = unsafe { (*rq).nr_phys_segments };
        // SAFETY: By the safety requirement.
        if segments != 1 || !unsafe { has_memory(rq) } {
            return Err(None);
        }
        // SAFETY: As above.
        let len = unsafe { (*rq).__data_len };
        let mut address = 0;
        // SAFETY: By the safety requirement. The request has memory.
        let mapped = unsafe { bindings::blk_dma_map_single(rq, dev, &mut address) };
        if mapped < 0 {
            let is_other = to_result(mapped) == Err(EAGAIN);
            return Err(Some(BlkStatus::RESOURCE).filter(|_| !is_other));
        }
        // INVARIANT: The range was just mapped.
        let this = if mapped == 0 {
            Self::Nothing
        } else {
            Self::Single { len, address }
        };
        match visit(address, len) {
            Ok(result) => Ok((this, result)),
            // SAFETY: By the safety requirement, and by the invariant.
            Err(status) => Err(Some(unsafe { this.undo(rq, dev, status) })),
        }
    }

    /// Does that for several segments.
    ///
    /// # Safety
    ///
    /// The caller owns the request, which has not ended, and which has memory. The device has a DMA
    /// mask, and its driver is bound until this returns.
    #[inline(never)]
    unsafe fn segments(
        rq: *mut bindings::request,
        dev: *mut bindings::device,
        visit: impl FnMut(DmaAddress, u32) -> BlkResult,
    ) -> BlkResult<Self> {
        // INVARIANT: Nothing is mapped yet.
        let mut this = Self::Nothing;
        // SAFETY: By the safety requirement.
        match unsafe { this.add_segments(rq, dev, visit) } {
            Ok(()) => Ok(this),
            // SAFETY: By the safety requirement, and by the invariant.
            Err(status) => Err(unsafe { this.undo(rq, dev, status) }),
        }
    }

    /// Maps all segments. If this fails, `self` is what was mapped before.
    ///
    /// # Safety
    ///
    /// The caller owns the request, which has not ended, and which has memory. The device has a DMA
    /// mask, and its driver is bound until this returns.
    unsafe fn add_segments(
        &mut self,
        rq: *mut bindings::request,
        dev: *mut bindings::device,
        mut visit: impl FnMut(DmaAddress, u32) -> BlkResult,
    ) -> BlkResult {
        let mut state: bindings::dma_iova_state = pin_init::zeroed();
        let mut iter = MaybeUninit::<Iter>::uninit();
        let raw = iter.as_mut_ptr();
        // SAFETY: By the safety requirement. There is room for C's iterator.
        let mut is_mapped = unsafe { bindings::blk_dma_map_start(rq, dev, &mut state, raw.cast()) };
        let mut total = 0u64;
        // SAFETY: C has initialised the state if it has mapped a range.
        if is_mapped && unsafe { bindings::blk_dma_is_iova(&mut state) } {
            // C has combined all segments, so this is the only range.
            //
            // SAFETY: C has returned a range that it has mapped.
            let Range { len, address } = unsafe { Range::of(raw) };
            // SAFETY: C has initialised the state.
            let bounces = unsafe { bindings::blk_dma_iova_bounces(&state) };
            // INVARIANT: The range is mapped.
            *self = if bounces {
                Self::BouncedIova { len, address }
            } else {
                Self::Iova { len, address }
            };
            visit(address, len)?;
            total = len.into();
            is_mapped = false;
        }
        // SAFETY: By the safety requirement.
        let is_recorded = unsafe { bindings::blk_dma_need_unmap(dev) };
        // Two loops, as most machines stay in this one, in which little is done.
        while is_mapped && !is_recorded {
            // SAFETY: C has returned a range that it has mapped.
            let range = unsafe { Range::of(raw) };
            // SAFETY: By the safety requirement.
            if unsafe { bindings::blk_dma_has_bounced(dev) } {
                break;
            }
            // There are fewer than 2^32 of them.
            total = total.wrapping_add(range.len.into());
            visit(range.address, range.len)?;
            // SAFETY: As above. The iterator was not moved.
            is_mapped = unsafe { bindings::blk_dma_map_next(rq, dev, raw.cast()) };
        }
        while is_mapped {
            // SAFETY: C has returned a range that it has mapped.
            let range = unsafe { Range::of(raw) };
            // SAFETY: By the safety requirement, and the range was just mapped.
            unsafe { self.add(rq, dev, range) }?;
            total = total.wrapping_add(range.len.into());
            visit(range.address, range.len)?;
            // SAFETY: As above. The iterator was not moved.
            is_mapped = unsafe { bindings::blk_dma_map_next(rq, dev, raw.cast()) };
        }
        // SAFETY: C has set the status, as it has mapped all or failed.
        status::from_raw(unsafe { bindings::blk_dma_map_status(raw.cast()) })?;
        // The device must not access more than what is mapped.
        //
        // SAFETY: By the safety requirement. The field does not change meanwhile.
        if total == u64::from(unsafe { (*rq).__data_len }) {
            Ok(())
        } else {
            Err(BlkStatus::IOERR)
        }
    }

    /// Records a range. It is unmapped if this fails.
    ///
    /// # Safety
    ///
    /// The range was just mapped for the device by itself. The request is that of `self`, which is
    /// no range of an IOMMU.
    #[inline(never)]
    unsafe fn add(
        &mut self,
        rq: *mut bindings::request,
        dev: *mut bindings::device,
        range: Range,
    ) -> BlkResult {
        if let Self::List(chunk) = self {
            let chunk = &mut **chunk;
            if let Some(free) = chunk.ranges.get_mut(chunk.used) {
                // INVARIANT: The range is mapped.
                *free = range;
                chunk.used += 1;
                return Ok(());
            }
        }
        let next = match core::mem::replace(self, Self::Nothing) {
            Self::List(chunk) => Some(chunk),
            _ => None,
        };
        // INVARIANT: All ranges are mapped.
        *self = match Chunk::new(range, next) {
            Ok(chunk) => Self::List(chunk),
            Err(next) => {
                // SAFETY: By the safety requirement. The range is not recorded.
                unsafe { range.unmap(rq, dev) };
                *self = next.map_or(Self::Nothing, Self::List);
                return Err(BlkStatus::RESOURCE);
            }
        };
        Ok(())
    }

    /// Undoes the mapping after an error.
    ///
    /// # Safety
    ///
    /// It is that of this request and this device, whose driver is bound until this returns.
    #[cold]
    unsafe fn undo(
        self,
        rq: *mut bindings::request,
        dev: *mut bindings::device,
        status: BlkStatus,
    ) -> BlkStatus {
        // SAFETY: By the safety requirement.
        unsafe { self.unmap(rq, dev) };
        status
    }

    /// Returns whether something has to be undone.
    #[inline]
    pub(super) fn is_needed(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Undoes the mapping.
    ///
    /// # Safety
    ///
    /// It is that of this request and this device, whose driver is bound until this returns. It has
    /// been bound ever since the request was mapped.
    #[inline(never)]
    pub(super) unsafe fn unmap(self, rq: *mut bindings::request, dev: *mut bindings::device) {
        match self {
            Self::Nothing => (),
            // SAFETY: By the safety requirement and the type invariant.
            Self::Single { len, address } => unsafe { Range { len, address }.unmap(rq, dev) },
            Self::Iova { len, address } => {
                // SAFETY: As above.
                unsafe { bindings::blk_dma_unmap_iova(rq, dev, address, len, false) };
            }
            Self::BouncedIova { len, address } => {
                // SAFETY: As above.
                unsafe { bindings::blk_dma_unmap_iova(rq, dev, address, len, true) };
            }
            Self::List(chunk) => {
                let mut rest = Some(chunk);
                while let Some(mut chunk) = rest {
                    for range in chunk.ranges.iter().take(chunk.used) {
                        // SAFETY: As above.
                        unsafe { range.unmap(rq, dev) };
                    }
                    rest = chunk.next.take();
                }
            }
        }
    }
}

impl Range {
    /// Returns the range that was mapped last.
    ///
    /// # Safety
    ///
    /// C has just mapped a range, which it has returned in `iter`.
    #[inline(always)]
    unsafe fn of(iter: *const Iter) -> Self {
        // SAFETY: By the safety requirement.
        let len = unsafe { (*iter).len };
        // SAFETY: As above.
        let address = unsafe { (*iter).address };
        Self { len, address }
    }

    /// Unmaps a range that was mapped by itself.
    ///
    /// # Safety
    ///
    /// It is mapped for the memory of this request, and for the device, whose driver is bound.
    #[inline]
    unsafe fn unmap(self, rq: *mut bindings::request, dev: *mut bindings::device) {
        // SAFETY: By the safety requirement.
        unsafe { bindings::blk_dma_unmap(rq, dev, self.address, self.len) };
    }
}

impl Chunk {
    /// Allocates a chunk with one range, or returns the next one.
    #[inline(never)]
    fn new(
        range: Range,
        next: Option<KBox<Self>>,
    ) -> core::result::Result<KBox<Self>, Option<KBox<Self>>> {
        let Ok(room) = KBox::<Self>::new_uninit(GFP_ATOMIC) else {
            return Err(next);
        };
        Ok(KBox::write(
            room,
            Self {
                ranges: [range; CHUNK],
                used: 1,
                next,
            },
        ))
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // Not by recursion, for which the stack may be too small.
        let mut rest = self.next.take();
        while let Some(mut chunk) = rest {
            rest = chunk.next.take();
        }
    }
}
