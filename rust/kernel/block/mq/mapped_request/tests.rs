// SPDX-License-Identifier: GPL-2.0

//! Tests of mapping, with a driver that copies what its device would.
//!
//! Where the guest has bounce buffers for all memory (`swiotlb=4096,force`), a request that was not
//! unmapped would lose data, and a mapping that is leaked would use them up: they are 8 MiB.

use super::{
    super::{
        CompletingRequest,
        IoCompletionBatch,
        NoTimer,
        NonBlocking,
        Op,
        QueueResult,
        TagSet,
        TagSetOptions, //
    },
    *, //
};
use crate::{
    device::{
        Bound,
        Device, //
    },
    error::from_err_ptr,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

/// What the driver does with its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// It transfers the data, then unmaps and ends them.
    Serve,
    /// The same, but it starts them before it maps them.
    ServeStarted,
    /// As `Serve`, but it completes them remotely.
    ServeRemotely,
    /// As `Serve`, but it maps a single segment by itself.
    ServeSingle,
    /// It refuses a single segment.
    RefuseSingle,
    /// It refuses the range with this index.
    RefuseRange(usize),
    /// It refuses that range, and has started the request before.
    RefuseRangeStarted(usize),
    /// It drops them when they are mapped.
    Drop,
    /// It keeps them.
    Keep,
}

struct Driver;

#[pin_data]
struct State {
    #[pin]
    inner: SpinLock<Inner>,
}

struct Inner {
    mode: Mode,
    ranges: KVec<(DmaAddress, u32)>,
    /// The data of the device.
    data: KVec<u8>,
    kept: Option<MappedRequest<Driver>>,
}

/// Copies between the data of the device and what is at an address.
fn transfer(address: DmaAddress, data: &mut [u8], to_memory: bool) {
    // SAFETY: The address is one of memory, as `with_device` has checked that there is no IOMMU.
    let memory =
        unsafe { bindings::memremap(address, data.len(), bindings::MEMREMAP_WB as c_ulong) };
    assert!(!memory.is_null());
    let memory = memory.cast::<u8>();
    if to_memory {
        // SAFETY: The memory is that of a request that the device may write to.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), memory, data.len()) };
    } else {
        // SAFETY: The memory is that of a request that the device may read from.
        unsafe { ptr::copy_nonoverlapping(memory, data.as_mut_ptr(), data.len()) };
    }
    // SAFETY: It was mapped above.
    unsafe { bindings::memunmap(memory.cast()) };
}

impl Inner {
    fn transfer(&mut self, rq: &Request<Driver>) {
        let mut at = 0;
        for (address, len) in self.ranges.iter() {
            let data = &mut self.data[at..][..*len as usize];
            transfer(*address, data, rq.op() == Op::from_raw(IN as u8));
            at += data.len();
        }
        assert_eq!(at, rq.bytes() as usize);
    }
}

#[vtable]
impl Operations for Driver {
    type Context = NonBlocking;
    type TagSetData = ();
    type QueueData = State;
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_: &State, _: &(), _: u32) -> impl PinInit<(), Error> {
        Ok(())
    }

    fn init_request(_: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
        let mut inner = rq.queue_data().inner.lock();
        let inner = &mut *inner;
        inner.ranges.clear();
        let (mode, ranges) = (inner.mode, &mut inner.ranges);
        let mut visit = |address, len| {
            let refused = match mode {
                Mode::RefuseSingle => true,
                Mode::RefuseRange(index) | Mode::RefuseRangeStarted(index) => index == ranges.len(),
                _ => false,
            };
            if refused {
                return Err(BlkStatus::TARGET);
            }
            ranges
                .push_within_capacity((address, len))
                .map_err(|_| BlkStatus::MEDIUM)
        };
        let guard = rcu::read_lock();
        let rq = if matches!(mode, Mode::ServeStarted | Mode::RefuseRangeStarted(_)) {
            match rq.start().map(&guard, visit) {
                Ok(rq) => rq,
                Err((rq, status)) => {
                    rq.end(Err(status));
                    return Ok(());
                }
            }
        } else if matches!(mode, Mode::ServeSingle | Mode::RefuseSingle) {
            match rq.map_single_and_start(&guard, |address, len| visit(address, len)) {
                Ok((rq, ())) => rq,
                Err((rq, Some(status))) => return Err(rq.reject(status)),
                Err((rq, None)) => rq
                    .map_and_start(&guard, visit)
                    .map_err(|(rq, status)| rq.reject(status))?,
            }
        } else {
            rq.map_and_start(&guard, visit)
                .map_err(|(rq, status)| rq.reject(status))?
        };
        match mode {
            Mode::Keep => inner.kept = Some(rq),
            Mode::Drop => drop(rq),
            Mode::ServeRemotely => {
                inner.transfer(&rq);
                let mut batch = IoCompletionBatch::new();
                if let Some(rq) = rq.unmap(&guard).complete_remote() {
                    batch.end(rq, Ok(()));
                }
            }
            _ => {
                inner.transfer(&rq);
                rq.unmap(&guard).end(Ok(()));
            }
        }
        Ok(())
    }

    fn complete(rq: CompletingRequest<Self>) {
        rq.end(Ok(()));
    }
}

/// A queue without a disk.
struct Queue {
    raw: *mut bindings::request_queue,
    data: Pin<KBox<DiskData<Driver>>>,
    tags: Arc<TagSet<Driver>>,
}

/// The bytes that requests use parts of.
const MEMORY: usize = 1 << 18;

/// The most bytes and ranges of a request.
const MAX_LEN: usize = 127 << 10;
const MAX_RANGES: usize = 128;

/// Parts of the memory: offset and length.
type Parts = &'static [(usize, usize)];

/// The number of parts of some requests, which is more than there are ranges in a chunk.
const PARTS: usize = 17;

/// Returns that many parts, with gaps between them.
const fn scattered(offset: usize, len: usize) -> [(usize, usize); PARTS] {
    let mut parts = [(0, len); PARTS];
    let mut i = 0;
    while i < parts.len() {
        parts[i].0 = i * 8192 + offset;
        i += 1;
    }
    parts
}

/// Whole pages, which an IOMMU can combine.
const PAGES: Parts = &scattered(0, 4096);

/// Parts of pages, which it cannot combine.
const SCATTERED: Parts = &scattered(512, 1024);

impl Queue {
    fn new(dma_device: Option<Arc<DmaDevice>>) -> Result<Self> {
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        let inner = Inner {
            mode: Mode::Serve,
            ranges: KVec::with_capacity(MAX_RANGES, GFP_KERNEL)?,
            data: KVec::from_elem(0, MAX_LEN, GFP_KERNEL)?,
            kept: None,
        };
        let state = try_pin_init!(State {
            inner <- new_spinlock!(inner),
        });
        let data = KBox::pin_init(tags.disk_data(dma_device, state), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue.
        let raw = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;
        Ok(Self { raw, data, tags })
    }

    fn inner(&self) -> crate::sync::lock::spinlock::SpinLockGuard<'_, Inner> {
        self.data.data().inner.lock()
    }

    /// Makes a request with parts of `memory`.
    fn request(
        &self,
        op: bindings::req_op,
        memory: &mut [u8],
        parts: Parts,
    ) -> Result<*mut bindings::request> {
        // SAFETY: The queue is valid.
        let rq = from_err_ptr(unsafe { bindings::blk_mq_alloc_request(self.raw, op, 0) })?;
        for (offset, len) in parts {
            let part = &mut memory[*offset..][..*len];
            // SAFETY: The request is new, and the memory remains until it has ended.
            let added = unsafe {
                bindings::blk_rq_map_kern(
                    rq,
                    part.as_mut_ptr().cast(),
                    *len as u32,
                    bindings::GFP_KERNEL,
                )
            };
            crate::error::to_result(added)?;
        }
        Ok(rq)
    }

    /// Executes a request, and returns its status.
    fn execute(
        &self,
        mode: Mode,
        op: bindings::req_op,
        memory: &mut [u8],
        parts: Parts,
    ) -> Result<BlkResult> {
        self.inner().mode = mode;
        let rq = self.request(op, memory, parts)?;
        // SAFETY: The request is new.
        let status = unsafe { bindings::blk_execute_rq(rq, false) };
        // SAFETY: It was executed, and is not used after this.
        unsafe { bindings::blk_mq_free_request(rq) };
        Ok(crate::block::status::from_raw(status))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        drop(self.inner().kept.take());
        // SAFETY: The test owns the queue, and does not use it again.
        self.tags.with_fixed_queues(|_| unsafe {
            bindings::blk_mq_destroy_queue(self.raw);
            bindings::blk_put_queue(self.raw);
        });
    }
}

const IN: bindings::req_op = bindings::req_op_REQ_OP_DRV_IN;
const OUT: bindings::req_op = bindings::req_op_REQ_OP_DRV_OUT;

/// Transfers data in both directions; returns the number of ranges.
fn transfers(queue: &Queue, mode: Mode, parts: Parts) -> Result<usize> {
    let mut memory = KVec::from_elem(0u8, MEMORY, GFP_KERNEL)?;
    for (index, byte) in memory.iter_mut().enumerate() {
        *byte = (index % 251) as u8;
    }
    queue.inner().data.fill(0xee);
    assert_eq!(queue.execute(mode, OUT, &mut memory, parts)?, Ok(()));
    let mut at = 0;
    for (offset, len) in parts {
        let inner = queue.inner();
        assert!(inner.data[at..][..*len] == memory[*offset..][..*len]);
        at += len;
    }
    assert!(queue.inner().data[at..].iter().all(|byte| *byte == 0xee));

    for (index, byte) in queue.inner().data.iter_mut().enumerate() {
        *byte = (index % 241) as u8;
    }
    memory.fill(0xdd);
    assert_eq!(queue.execute(mode, IN, &mut memory, parts)?, Ok(()));
    let (mut at, mut end) = (0, 0);
    for (offset, len) in parts {
        assert!(memory[end..*offset].iter().all(|byte| *byte == 0xdd));
        assert!(queue.inner().data[at..][..*len] == memory[*offset..][..*len]);
        at += len;
        end = offset + len;
    }
    assert!(memory[end..].iter().all(|byte| *byte == 0xdd));
    let ranges = queue.inner().ranges.len();
    Ok(ranges)
}

fn memory_is_mapped(dev: &Device<Bound>) -> Result {
    let queue = Queue::new(Some(DmaDevice::new(dev)?))?;
    for mode in [
        Mode::Serve,
        Mode::ServeStarted,
        Mode::ServeRemotely,
        Mode::ServeSingle,
    ] {
        assert_eq!(transfers(&queue, mode, &[])?, 0);
        assert_eq!(transfers(&queue, mode, &[(0, 4096)])?, 1);
        assert_eq!(transfers(&queue, mode, &[(1536, 512)])?, 1);
        // It crosses pages.
        assert_eq!(transfers(&queue, mode, &[(512, 65536)])?, 1);
        // Adjacent segments are one range.
        assert_eq!(transfers(&queue, mode, &[(0, 4096), (4096, 8192)])?, 1);
        assert!([1, PARTS].contains(&transfers(&queue, mode, PAGES)?));
        assert_eq!(transfers(&queue, mode, SCATTERED)?, PARTS);
        assert_eq!(
            transfers(&queue, mode, &[(512, 512), (8192, 1024), (20992, 512)])?,
            3
        );
    }
    Ok(())
}

fn nothing_stays_mapped(dev: &Device<Bound>) -> Result {
    let queue = Queue::new(Some(DmaDevice::new(dev)?))?;
    let mut memory = KVec::from_elem(0u8, MEMORY, GFP_KERNEL)?;
    // A request that leaks all that it maps uses up more than 8 MiB.
    for _ in 0..200 {
        for op in [IN, OUT] {
            for (mode, status) in [
                (Mode::RefuseRange(0), BlkStatus::TARGET),
                (Mode::RefuseRange(16), BlkStatus::TARGET),
                (Mode::RefuseRangeStarted(15), BlkStatus::TARGET),
                (Mode::Drop, BlkStatus::IOERR),
            ] {
                assert_eq!(
                    queue.execute(mode, op, &mut memory, SCATTERED)?,
                    Err(status)
                );
            }
            for parts in [PAGES, &[(0, 65536)]] {
                for (mode, status) in [
                    (Mode::RefuseRange(0), BlkStatus::TARGET),
                    (Mode::RefuseSingle, BlkStatus::TARGET),
                    (Mode::Drop, BlkStatus::IOERR),
                ] {
                    let result = queue.execute(mode, op, &mut memory, parts)?;
                    assert_eq!(result, Err(status));
                }
            }
        }
    }
    Ok(())
}

/// Submits a request, which the driver keeps, and returns it.
fn keep(queue: &Queue, memory: &mut [u8], parts: Parts) -> Result<MappedRequest<Driver>> {
    queue.inner().mode = Mode::Keep;
    let rq = queue.request(IN, memory, parts)?;
    // SAFETY: The request is new, and C frees it when it has ended.
    unsafe { bindings::blk_execute_rq_nowait(rq, false) };
    let kept = queue.inner().kept.take();
    kept.ok_or(EIO)
}

#[macros::kunit_tests(rust_block_mq_mapped_request)]
mod suite {
    use super::*;
    use crate::pci::test_device::{
        each_device,
        skip_unless,
        until_unbind, //
    };

    /// Calls `f` with a device whose DMA addresses are physical ones: it has no IOMMU.
    fn with_device(
        f: impl FnOnce(&crate::pci::Device<crate::device::Core<'_>>) -> Result,
    ) -> Result {
        let (mut f, mut tested, mut result) = (Some(f), 0, Ok(()));
        each_device(|dev| {
            let raw: *mut bindings::device =
                ptr::from_ref(dev.as_ref() as &Device).cast_mut().cast();
            // SAFETY: The device is valid. Its group is set when it is found.
            if !unsafe { (*raw).iommu_group }.is_null() {
                return;
            }
            if let Some(f) = f.take() {
                tested += 1;
                result = f(dev);
            }
        });
        skip_unless(tested);
        result
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<MappedRequest<Driver>>(), 16 + size_of::<usize>());
    }

    #[test]
    fn a_device_transfers_the_data_of_requests() -> Result {
        with_device(|dev| until_unbind(dev, || memory_is_mapped(dev.as_ref())))
    }

    #[test]
    fn a_device_that_needs_no_unmapping_at_first_transfers_the_data() -> Result {
        with_device(|dev| {
            let raw = ptr::from_ref(dev.as_ref() as &Device).cast_mut().cast();
            // No driver uses the device, so it may keep the mask.
            //
            // SAFETY: Nothing is mapped for the device.
            let set = unsafe { bindings::dma_set_mask(raw, u64::MAX) };
            crate::error::to_result(set)?;
            until_unbind(dev, || memory_is_mapped(dev.as_ref()))
        })
    }

    #[test]
    fn nothing_stays_mapped_after_an_error() -> Result {
        with_device(|dev| until_unbind(dev, || nothing_stays_mapped(dev.as_ref())))
    }

    #[test]
    fn requests_of_a_queue_without_a_device_are_not_mapped() -> Result {
        let queue = Queue::new(None)?;
        let mut memory = KVec::from_elem(0u8, MEMORY, GFP_KERNEL)?;
        for mode in [Mode::Serve, Mode::ServeStarted] {
            let status = queue.execute(mode, OUT, &mut memory, SCATTERED)?;
            assert_eq!(status, Err(BlkStatus::OFFLINE));
        }
        Ok(())
    }

    #[test]
    fn requests_are_not_mapped_after_the_driver_was_unbound() -> Result {
        let mut memory = KVec::from_elem(0u8, MEMORY, GFP_KERNEL)?;
        with_device(|dev| {
            let (queue, kept) = until_unbind(dev, || -> Result<_> {
                let queue = Queue::new(Some(DmaDevice::new(dev.as_ref())?))?;
                let kept = [
                    keep(&queue, &mut memory, SCATTERED)?,
                    keep(&queue, &mut memory, SCATTERED)?,
                    keep(&queue, &mut memory, &[(0, 4096)])?,
                ];
                Ok((queue, kept))
            })?;
            // These stay mapped, which costs less than a megabyte of bounce buffers.
            let [first, second, third] = kept;
            first.unmap(&rcu::read_lock()).end(Ok(()));
            drop(second);
            third.unmap(&rcu::read_lock()).end(Ok(()));
            let status = queue.execute(Mode::Serve, OUT, &mut memory, SCATTERED)?;
            assert_eq!(status, Err(BlkStatus::OFFLINE));
            Ok(())
        })
    }
}
