// SPDX-License-Identifier: GPL-2.0

//! A started request whose memory is mapped for a device.
//!
//! A device reads or writes the memory of a request by DMA. So that the memory does not go while it
//! does, the request is part of the mapping: it ends only after it was unmapped.

use super::{
    disk_data::DiskData,
    dma_mapping::DmaMapping,
    handle::{
        IdleRequest,
        StartedRequest, //
    },
    Operations,
    Request, //
};
use crate::{
    bindings,
    block::{
        BlkResult,
        BlkStatus, //
    },
    dma::{
        bound::DmaDevice,
        DmaAddress, //
    },
    sync::rcu, //
};
use core::{
    cell::UnsafeCell,
    mem::{
        replace,
        ManuallyDrop, //
    },
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};

/// A started request whose memory is mapped for the DMA device of its queue.
///
/// It can be stored, and sent to other threads. The driver unmaps it when the device does not use
/// the memory any more, and gets back the [`StartedRequest`]. Dropping it does so too, and ends the
/// request with [`BlkStatus::IOERR`]; the driver therefore keeps it for as long as the device may
/// access the memory.
///
/// After the driver of the device was unbound, unmapping does nothing, because the device is not
/// the driver's any more. An IOMMU then keeps the mapping, and what is in a bounce buffer is not
/// copied to the memory. So a driver removes its disks before.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::{mq::{MappedRequest, Operations, StartedRequest}, BlkResult},
///     sync::rcu,
/// };
///
/// /// Maps the memory of a request, and passes the addresses to a device.
/// fn submit<T: Operations>(rq: StartedRequest<T>) -> Option<MappedRequest<T>> {
///     let mapped = rq.map(&rcu::read_lock(), |address, len| {
///         pr_debug!("{len} bytes at {address:#x}\n");
///         Ok(())
///     });
///     match mapped {
///         Ok(rq) => Some(rq),
///         Err((rq, status)) => {
///             rq.end(Err(status));
///             None
///         }
///     }
/// }
///
/// /// Ends a request when the device is ready.
/// fn done<T: Operations>(rq: MappedRequest<T>, result: BlkResult) {
///     let rq = rq.unmap(&rcu::read_lock());
///     rq.end(result);
/// }
/// ```
///
/// # Invariants
///
/// It owns the request, which is started, and which is in no list, timer or batch. `mapping` is
/// that of the request for the DMA device of its queue.
#[must_use = "dropping a request ends it with an I/O error"]
pub struct MappedRequest<T: Operations> {
    rq: NonNull<Request<T>>,
    // The cell hides the values that are no mapping: if one of them were used for a request that
    // there is not, moving the others would take more instructions.
    mapping: UnsafeCell<DmaMapping>,
}

// SAFETY: A request may be ended and unmapped by any thread, and the driver's data in it is `Send`
// and `Sync`.
unsafe impl<T: Operations> Send for MappedRequest<T> {}

/// Maps a request for the DMA device of its queue.
///
/// # Safety
///
/// The caller owns the request, which has not ended.
#[inline(always)]
unsafe fn map<T: Operations>(
    rq: &Request<T>,
    guard: &rcu::Guard,
    visit: impl FnMut(DmaAddress, u32) -> BlkResult,
) -> BlkResult<DmaMapping> {
    let dev = dma_device(rq).and_then(|dev| dev.access(guard));
    let dev = dev.ok_or(BlkStatus::OFFLINE)?;
    // SAFETY: By the safety requirement. The driver of the device is bound while the guard exists,
    // and the device has a DMA mask.
    unsafe { DmaMapping::new(rq.as_raw(), dev, visit) }
}

/// Maps a request with a single segment for the DMA device of its queue, as
/// [`DmaMapping::single`].
///
/// # Safety
///
/// The caller owns the request, which has not ended.
#[inline(always)]
unsafe fn map_single<T: Operations, R>(
    rq: &Request<T>,
    guard: &rcu::Guard,
    visit: impl FnOnce(DmaAddress, u32) -> BlkResult<R>,
) -> core::result::Result<(DmaMapping, R), Option<BlkStatus>> {
    let dev = dma_device(rq).and_then(|dev| dev.access(guard));
    let dev = dev.ok_or(Some(BlkStatus::OFFLINE))?;
    // SAFETY: By the safety requirement. The driver of the device is bound while the guard exists,
    // and the device has a DMA mask.
    unsafe { DmaMapping::single(rq.as_raw(), dev, visit) }
}

/// Returns the DMA device of the queue of a request.
#[inline]
fn dma_device<T: Operations>(rq: &Request<T>) -> Option<&DmaDevice> {
    // SAFETY: By the invariants of `Request`. Nothing else writes the field.
    let queue = unsafe { (*rq.as_raw()).q };
    // SAFETY: By the invariants of `Request`, it is a queue of this driver, which was allocated
    // with data of this type. That remains until the request has ended.
    unsafe { DiskData::<T>::of_queue(queue) }.dma_device()
}

impl<'q, T: Operations> IdleRequest<'q, T> {
    /// Maps the memory of the request, as [`StartedRequest::map`], then starts it.
    ///
    /// If this fails, the driver can [reject](Self::reject) the request, so the block layer
    /// dispatches it again after a delay. So this, and not [`StartedRequest::map`], is what
    /// `queue_rq` uses where mapping may fail for lack of resources.
    ///
    /// # Errors
    ///
    /// As for [`StartedRequest::map`]; the request is not started.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::{mq::{IdleRequest, MappedRequest, Operations, RejectedRequest}, BlkStatus},
    ///     dma::DmaAddress,
    ///     prelude::*,
    ///     sync::rcu,
    /// };
    ///
    /// fn prepare<'q, T: Operations>(
    ///     rq: IdleRequest<'q, T>,
    ///     list: &mut KVec<DmaAddress>,
    /// ) -> Result<MappedRequest<T>, RejectedRequest<'q, T>> {
    ///     let mapped = rq.map_and_start(&rcu::read_lock(), |address, _len| {
    ///         list.push_within_capacity(address).map_err(|_| BlkStatus::RESOURCE)
    ///     });
    ///     mapped.map_err(|(rq, status)| rq.reject(status))
    /// }
    /// ```
    #[inline(always)]
    pub fn map_and_start(
        self,
        guard: &rcu::Guard,
        visit: impl FnMut(DmaAddress, u32) -> BlkResult,
    ) -> core::result::Result<MappedRequest<T>, (Self, BlkStatus)> {
        // SAFETY: By the type invariant, `self` owns the request.
        match unsafe { map(&self, guard, visit) } {
            // INVARIANT: The request is started, and this is its mapping.
            Ok(mapping) => Ok(MappedRequest {
                rq: self.start().into_inner(),
                mapping: mapping.into(),
            }),
            Err(status) => Err((self, status)),
        }
    }

    /// Maps the memory of a request that has a single segment, and starts the request.
    ///
    /// Calls `visit` with the range, and also returns what that returns. For most requests this is
    /// faster than [`map_and_start`](Self::map_and_start), as nothing has to be kept between
    /// ranges.
    ///
    /// # Errors
    ///
    /// [`None`] if the memory is not a single range that can be mapped at once; then
    /// [`map_and_start`](Self::map_and_start) can map it. Otherwise as for [`StartedRequest::map`].
    /// The request is not started, and nothing is mapped.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::mq::{IdleRequest, MappedRequest, Operations, RejectedRequest},
    ///     dma::DmaAddress,
    ///     prelude::*,
    ///     sync::rcu,
    /// };
    ///
    /// /// The first range of a request, where a device finds the others.
    /// fn prepare<'q, T: Operations>(
    ///     rq: IdleRequest<'q, T>,
    ///     guard: &rcu::Guard,
    /// ) -> Result<(MappedRequest<T>, Option<DmaAddress>), RejectedRequest<'q, T>> {
    ///     let rq = match rq.map_single_and_start(guard, |address, _len| Ok(address)) {
    ///         Ok((rq, address)) => return Ok((rq, Some(address))),
    ///         Err((rq, Some(status))) => return Err(rq.reject(status)),
    ///         Err((rq, None)) => rq,
    ///     };
    ///     let mut first = None;
    ///     let mapped = rq.map_and_start(guard, |address, _len| {
    ///         first.get_or_insert(address);
    ///         Ok(())
    ///     });
    ///     match mapped {
    ///         Ok(rq) => Ok((rq, first)),
    ///         Err((rq, status)) => Err(rq.reject(status)),
    ///     }
    /// }
    /// ```
    #[inline(always)]
    pub fn map_single_and_start<R>(
        self,
        guard: &rcu::Guard,
        visit: impl FnOnce(DmaAddress, u32) -> BlkResult<R>,
    ) -> core::result::Result<(MappedRequest<T>, R), (Self, Option<BlkStatus>)> {
        // SAFETY: By the type invariant, `self` owns the request.
        match unsafe { map_single(&self, guard, visit) } {
            Ok((mapping, result)) => {
                // INVARIANT: The request is started, and this is its mapping.
                let mapped = MappedRequest {
                    rq: self.start().into_inner(),
                    mapping: mapping.into(),
                };
                Ok((mapped, result))
            }
            Err(status) => Err((self, status)),
        }
    }
}

impl<T: Operations> StartedRequest<T> {
    /// Maps nothing: for a request whose memory the device does not access, or that has none, such
    /// as a flush, where a [`MappedRequest`] is expected.
    #[inline]
    pub fn map_nothing(self) -> MappedRequest<T> {
        // INVARIANT: By the type invariant of `StartedRequest`, and nothing is mapped.
        MappedRequest {
            rq: self.into_inner(),
            mapping: DmaMapping::Nothing.into(),
        }
    }

    /// Maps the memory of the request for the DMA device of its queue, and calls `visit` with each
    /// range of addresses and its length in bytes, in the order of the data.
    ///
    /// Their lengths add up to [`Request::bytes`]. A request without data, such as a flush or a
    /// discard, has no memory. Never sleeps.
    ///
    /// # Errors
    ///
    /// [`BlkStatus::OFFLINE`] if the queue has no DMA device, or the driver of the device was
    /// unbound; [`BlkStatus::RESOURCE`] for lack of memory or addresses; [`BlkStatus::INVAL`] for
    /// memory of another device; other statuses that C has for a mapping that fails; and those that
    /// `visit` returns. The request is returned, and nothing is mapped.
    #[inline]
    pub fn map(
        self,
        guard: &rcu::Guard,
        visit: impl FnMut(DmaAddress, u32) -> BlkResult,
    ) -> core::result::Result<MappedRequest<T>, (Self, BlkStatus)> {
        // SAFETY: By the type invariant, `self` owns the request.
        match unsafe { map(&self, guard, visit) } {
            // INVARIANT: By the type invariant of `StartedRequest`, and this is its mapping.
            Ok(mapping) => Ok(MappedRequest {
                rq: self.into_inner(),
                mapping: mapping.into(),
            }),
            Err(status) => Err((self, status)),
        }
    }
}

impl<T: Operations> MappedRequest<T> {
    /// Unmaps the memory. Never sleeps.
    ///
    /// After a read, the memory contains what the device has written.
    #[inline]
    pub fn unmap(self, guard: &rcu::Guard) -> StartedRequest<T> {
        let this = ManuallyDrop::new(self);
        let rq = this.rq;
        // SAFETY: The mapping is not used after this, nor dropped.
        let mapping = unsafe { ptr::read(&this.mapping) }.into_inner();
        if mapping.is_needed() {
            // SAFETY: By the type invariant, the request is owned, and has not ended.
            let rq = unsafe { rq.as_ref() };
            // SAFETY: By the type invariant, it is that of the request.
            unsafe { unmap(rq, mapping, guard) };
        }
        // SAFETY: By the type invariant, and `this` does not own the request any more.
        unsafe { StartedRequest::from_raw(rq) }
    }
}

/// Unmaps the memory of a request, unless the driver of the device was unbound.
///
/// # Safety
///
/// The mapping is that of the request for the DMA device of its queue.
#[inline(never)]
unsafe fn unmap<T: Operations>(rq: &Request<T>, mapping: DmaMapping, guard: &rcu::Guard) {
    if let Some(dev) = dma_device(rq).and_then(|dev| dev.access(guard)) {
        // SAFETY: By the safety requirement. The driver is bound while the guard exists. It was
        // not unbound meanwhile, since a `DmaDevice` is for one binding.
        unsafe { mapping.unmap(rq.as_raw(), dev) };
    }
}

impl<T: Operations> Deref for MappedRequest<T> {
    type Target = Request<T>;

    #[inline]
    fn deref(&self) -> &Request<T> {
        // SAFETY: By the type invariant, `self` owns the request.
        unsafe { self.rq.as_ref() }
    }
}

impl<T: Operations> Drop for MappedRequest<T> {
    #[cold]
    fn drop(&mut self) {
        let mapping = replace(self.mapping.get_mut(), DmaMapping::Nothing);
        // SAFETY: By the type invariant, it is that of the request.
        unsafe { unmap(self, mapping, &rcu::read_lock()) };
        // SAFETY: By the type invariant, `self` owns the request, which is not used after this.
        unsafe { bindings::blk_mq_end_request(self.as_raw(), BlkStatus::IOERR.as_raw()) };
    }
}

#[cfg(all(CONFIG_RUST_KUNIT_TESTS, CONFIG_PCI))]
mod tests;
