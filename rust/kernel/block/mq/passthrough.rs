// SPDX-License-Identifier: GPL-2.0

//! A request queue without a disk, for requests that the driver itself makes.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    context::memalloc_noio,
    disk_data::DiskData,
    tag_set::timeout_jiffies,
    Operations,
    Request,
    RequestQueue,
    TagSet, //
};
use crate::{
    bindings,
    block::{
        limits::QueueLimits,
        status, //
        BlkResult,
    },
    dma::bound::DmaDevice,
    error::{
        from_err_ptr,
        to_result, //
    },
    late_drop::{
        self,
        LateDrop, //
    },
    module::this_module,
    module_pin::ModulePin,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc,
    time::Delta, //
};
use core::{
    marker::PhantomData,
    mem,
    ops::Deref,
    ptr::NonNull, //
};

/// A request queue without a disk: what C allocates by `blk_mq_alloc_queue()`.
///
/// A driver makes one to send commands of its own to a device: it allocates a [`Passthrough`]
/// request, and executes it. To [`Operations::queue_rq`] it is a request like any other, with the
/// operation [`Op::DriverIn`] or [`Op::DriverOut`], and with a tag and a timeout. What it asks for
/// is in the driver's data of the request.
///
/// A tag set without reserved tags can have several such queues, and disks at the same time, which
/// then share its tags.
///
/// Dropping it waits until its requests have been freed. It may be dropped in any context: where
/// the caller cannot wait, a work item drops it a little later. A module that leaks it is never
/// freed.
///
/// [`Op::DriverIn`]: super::Op::DriverIn
/// [`Op::DriverOut`]: super::Op::DriverOut
///
/// # Examples
///
/// A device that squares a number:
///
/// ```
/// use kernel::{
///     block::{limits::QueueLimits, mq::*},
///     prelude::*,
///     sync::atomic::{Atomic, Relaxed},
/// };
///
/// struct Driver;
///
/// #[vtable]
/// impl Operations for Driver {
///     type RequestData = Atomic<u64>;
///
///     fn init_request(_: &()) -> impl PinInit<Atomic<u64>> {
///         Atomic::new(0)
///     }
///
///     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
///         let rq = rq.start();
///         let number = rq.data().load(Relaxed);
///         rq.data().store(number * number, Relaxed);
///         rq.end(Ok(()));
///         Ok(())
///     }
/// #   type Context = Blocking;
/// #   type TagSetData = ();
/// #   type QueueData = ();
/// #   type HwData = ();
/// #   type Timer = NoTimer;
/// #
/// #   fn init_hw_queue(_: &(), _: &(), _: u32) -> impl PinInit<(), Error> {
/// #       Ok(())
/// #   }
///     // ...
/// }
///
/// let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
/// let queue = PassthroughQueue::new(tags, &QueueLimits::default(), None, Ok(()))?;
///
/// let rq = queue.request(PassthroughOp::In)?;
/// rq.data().store(7, Relaxed);
/// let rq = rq.execute()?;
/// assert!(rq.status().is_ok());
/// assert_eq!(rq.data().load(Relaxed), 49);
/// # Ok::<(), Error>(())
/// ```
pub struct PassthroughQueue<T: Operations> {
    queue: LateDrop<Queue<T>>,
}

/// The inner part of a queue. Dropping it waits.
///
/// The data is dropped before the tag set.
///
/// # Invariants
///
/// It owns `queue`, which is on `tag_set`, was allocated with `data`, and is not destroyed.
struct Queue<T: Operations> {
    queue: NonNull<bindings::request_queue>,
    data: Pin<KBox<DiskData<T>>>,
    tag_set: Arc<TagSet<T>>,
}

// SAFETY: C synchronises access to the queue, and the driver's data is `Send` and `Sync`.
unsafe impl<T: Operations> Send for Queue<T> {}

// SAFETY: As above.
unsafe impl<T: Operations> Sync for Queue<T> {}

impl<T: Operations> Queue<T> {
    fn new(
        tag_set: Arc<TagSet<T>>,
        limits: &QueueLimits,
        data: Pin<KBox<DiskData<T>>>,
    ) -> Result<Self> {
        let mut limits = limits.as_raw();
        let queue = tag_set.with_fixed_queues(|set| {
            tag_set.check_reserved_tags()?;
            // SAFETY: The tag set is valid, and so are the limits. The tag set and the data are
            // dropped after the queue was destroyed.
            from_err_ptr(unsafe {
                bindings::blk_mq_alloc_queue(
                    set,
                    &mut limits,
                    core::ptr::from_ref(&*data).cast_mut().cast(),
                )
            })
        })?;
        // INVARIANT: The queue was just allocated.
        Ok(Self {
            queue: NonNull::new(queue).ok_or(ENOMEM)?,
            data,
            tag_set,
        })
    }
}

impl<T: Operations> Drop for Queue<T> {
    fn drop(&mut self) {
        let queue = self.queue.as_ptr();
        // Requests that were executed without waiting may be in a hardware queue that the driver
        // has stopped, or on the requeue list. All others borrow the queue, so no request is
        // allocated from here on.
        //
        // SAFETY: By the type invariant, the queue was allocated with `data`, whose timer is
        // cancelled below.
        unsafe { RequestQueue::<T>::from_raw(self.queue) }.start_and_disable_stop();
        self.tag_set.with_fixed_queues(|_| {
            // SAFETY: By the type invariant. To freeze it runs the hardware queues, whose number
            // does not change here.
            unsafe { bindings::blk_freeze_queue_start(queue) }
        });
        // Waits for requests and timeout handlers, which may need the lock that was taken above.
        //
        // SAFETY: By the type invariant, and the freeze was started.
        unsafe { bindings::blk_mq_freeze_queue_wait(queue) };
        // SAFETY: By the type invariant, and this task has frozen it.
        unsafe { bindings::blk_mq_unfreeze_queue_nomemrestore(queue) };
        // This also waits for callbacks that are still running, as it retires data of hardware
        // queues.
        self.tag_set.with_fixed_queues(|_| {
            // SAFETY: By the type invariant. The number of hardware queues does not change
            // meanwhile.
            unsafe { bindings::blk_mq_destroy_queue(queue) }
        });
        // The timer is not started again.
        self.data.cancel_timer();
        // SAFETY: By the type invariant, `self` owns the queue, which is not used again.
        unsafe { bindings::blk_put_queue(queue) };
    }
}

impl<T: Operations> PassthroughQueue<T> {
    /// Creates a queue on `tags`, with the limits, and with driver data of its own.
    ///
    /// Of the limits, those that are about the memory of a request matter. Requests can be mapped
    /// for the device `dma`, if there is one.
    ///
    /// The second queue or disk on a tag set waits until the requests of the first have ended, and
    /// until the [`Passthrough`] and [`Executed`] requests of the first have been dropped. The
    /// caller must not hold one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the limits are invalid, `ENOMEM` if out of memory, `EDEADLK` in a callback of
    /// the block layer or in another context that cannot wait for I/O, `EAGAIN` while the
    /// parameters of the module are being parsed, `ENOTSUPP` in a module for a kernel without sysfs
    /// or Tasks RCU, `EBUSY` if the tag set has reserved tags and a queue or disk already, or an
    /// error of `data`.
    pub fn new(
        tags: Arc<TagSet<T>>,
        limits: &QueueLimits,
        dma: Option<Arc<DmaDevice>>,
        data: impl PinInit<T::QueueData, Error>,
    ) -> Result<Self> {
        const_assert!(size_of::<DiskData<T>>() <= late_drop::MAX_SIZE);
        limits.validate()?;
        if limits.zoned {
            // Zones are those of a disk.
            return Err(EINVAL);
        }
        late_drop::check_may_wait()?;
        let pin = ModulePin::new(this_module::<T::OwnerModule>())?;
        let data = KBox::pin_init(tags.disk_data(dma, data), GFP_KERNEL)?;
        let queue = Queue::new(tags, limits, data)?;
        Ok(Self {
            queue: LateDrop::new(pin, Ok(queue), GFP_KERNEL)?,
        })
    }

    /// Returns the driver data of the queue.
    pub fn queue_data(&self) -> &T::QueueData {
        self.queue.data.data()
    }

    /// Returns the tag set that holds the requests of the queue.
    pub fn tag_set(&self) -> &Arc<TagSet<T>> {
        &self.queue.tag_set
    }

    /// Allocates a request, which belongs to a hardware queue of the current CPU, of the type
    /// [`QueueType::Default`](super::QueueType::Default).
    ///
    /// Waits until a tag is free, and while the tag set is frozen. C wakes a task only after an
    /// eighth of the tags were freed, or eight of them, so the wait may go on while a few are free.
    ///
    /// # Errors
    ///
    /// `EDEADLK` in a callback of the block layer or in another context that cannot wait for I/O.
    pub fn request(&self, op: PassthroughOp) -> Result<Passthrough<'_, T>> {
        self.alloc(op, 0)
    }

    /// Allocates a request, like [`Self::request`], without waiting.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if no tag is free, or if the tag set is frozen, and `EDEADLK` in a context that
    /// cannot sleep.
    pub fn try_request(&self, op: PassthroughOp) -> Result<Passthrough<'_, T>> {
        self.alloc(op, bindings::BLK_MQ_REQ_NOWAIT)
    }

    /// Allocates a request, like [`Self::request`], with one of the tags that
    /// [`TagSetOptions::reserved_tags`] has reserved.
    ///
    /// It is dispatched before requests that wait to be dispatched, also before those that the
    /// driver has rejected for want of something. One that is requeued later, or is executed while
    /// this one is rejected, may come before it. So a driver must not reject others until this one
    /// has run.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the tag set has no such tags; otherwise as [`Self::request`].
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::mq::*, prelude::*};
    ///
    /// /// Has a device reset. The tags that others have are free when that is done.
    /// fn reset<T: Operations>(queue: &PassthroughQueue<T>) -> Result {
    ///     let rq = queue.reserved_request(PassthroughOp::In)?;
    ///     // The command would be stored in `rq.data()` here.
    ///     Ok(rq.execute()?.status()?)
    /// }
    /// ```
    ///
    /// [`TagSetOptions::reserved_tags`]: field@super::TagSetOptions::reserved_tags
    pub fn reserved_request(&self, op: PassthroughOp) -> Result<Passthrough<'_, T>> {
        self.alloc_reserved(op, 0)
    }

    /// Allocates a request, like [`Self::reserved_request`], without waiting.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the tag set has no such tags; otherwise as [`Self::try_request`].
    pub fn try_reserved_request(&self, op: PassthroughOp) -> Result<Passthrough<'_, T>> {
        self.alloc_reserved(op, bindings::BLK_MQ_REQ_NOWAIT)
    }

    fn alloc_reserved(
        &self,
        op: PassthroughOp,
        flags: bindings::blk_mq_req_flags_t,
    ) -> Result<Passthrough<'_, T>> {
        // C would warn, then wait forever.
        if !self.tag_set().has_reserved_tags() {
            return Err(EINVAL);
        }
        self.alloc(op, flags | bindings::BLK_MQ_REQ_RESERVED)
    }

    fn alloc(
        &self,
        op: PassthroughOp,
        flags: bindings::blk_mq_req_flags_t,
    ) -> Result<Passthrough<'_, T>> {
        // SAFETY: By the type invariant of `Queue`, which is borrowed for `'_`. If `flags` ask for
        // a reserved tag, there are some, as checked.
        unsafe { Passthrough::alloc(self.queue.queue, op, flags) }
    }
}

/// The direction of a [`Passthrough`] request, as seen from the driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PassthroughOp {
    /// The device writes to the buffer of the request, or the request has no buffer.
    In,
    /// The device reads the buffer of the request.
    Out,
}

impl PassthroughOp {
    fn as_raw(self) -> bindings::blk_opf_t {
        match self {
            Self::In => bindings::req_op_REQ_OP_DRV_IN,
            Self::Out => bindings::req_op_REQ_OP_DRV_OUT,
        }
    }
}

/// A request that the driver does not have, and its buffer.
///
/// # Invariants
///
/// It owns the request, which is not started, and belongs to a [`PassthroughQueue`] or a disk that
/// is not dropped for `'q`. If the request has a bio, that is one, for the memory of `buffer`; or
/// it is for the memory of a user, and something that is dropped before this undoes that.
pub(super) struct OwnedRequest<'q, T: Operations> {
    rq: NonNull<Request<T>>,
    pub(super) buffer: Option<KVVec<u8>>,
    is_reserved: bool,
    _queue: PhantomData<&'q PassthroughQueue<T>>,
}

// SAFETY: A request may be executed and freed by any task, and the driver's data in it is `Send`
// and `Sync`.
unsafe impl<T: Operations> Send for OwnedRequest<'_, T> {}

impl<T: Operations> OwnedRequest<'_, T> {
    pub(super) fn request(&self) -> &Request<T> {
        // SAFETY: By the type invariant.
        unsafe { self.rq.as_ref() }
    }

    /// Passes the request to the driver, and waits until it has ended. Returns what it has ended
    /// with.
    ///
    /// # Errors
    ///
    /// `EDEADLK` if the caller must not wait for I/O. The request was not executed then.
    pub(super) fn execute(&mut self) -> Result<BlkResult> {
        late_drop::check_may_wait()?;
        let rq = self.request().as_raw();
        // SAFETY: By the type invariant, the request is not started, and the queue is not destroyed
        // meanwhile. C does not free the request. It is the caller's again when it has ended.
        let status = unsafe { bindings::blk_execute_rq(rq, self.is_reserved) };
        // The bio has ended, but some paths leave the pointer to it.
        self.forget_bio();
        // To C, the request is in flight until it is freed, and could time out.
        //
        // SAFETY: As above. The driver does not have the request any more.
        let state = unsafe { &raw mut (*rq).state };
        // INVARIANT: The request counts as not started.
        //
        // SAFETY: The field is valid. A timeout handler may read it concurrently, so it is written
        // once.
        unsafe { state.write_volatile(bindings::mq_rq_state_MQ_RQ_IDLE) };
        Ok(status::from_raw(status))
    }

    /// Makes the request one without a bio.
    pub(super) fn forget_bio(&mut self) {
        let rq = self.request().as_raw();
        // SAFETY: By the type invariant. The driver does not have the request.
        unsafe { (*rq).bio = core::ptr::null_mut() };
        // SAFETY: As above.
        unsafe { (*rq).biotail = core::ptr::null_mut() };
    }
}

impl<T: Operations> Drop for OwnedRequest<'_, T> {
    fn drop(&mut self) {
        let rq = self.request().as_raw();
        // SAFETY: By the type invariant.
        let bio = unsafe { mem::replace(&mut (*rq).bio, core::ptr::null_mut()) };
        if !bio.is_null() {
            // This undoes the mapping. The buffer is dropped after it, since that may be copied to.
            //
            // SAFETY: By the type invariant, this is the bio that `blk_rq_map_kern` has made, and
            // it has not ended.
            unsafe { bindings::bio_endio(bio) };
        }
        // SAFETY: By the type invariant, `self` owns the request, which is not used again.
        unsafe { bindings::blk_mq_free_request(rq) };
    }
}

/// A request that the driver makes, and has not executed yet: for a [`PassthroughQueue`], or for a
/// disk, by [`DiskAccess::request`](super::DiskAccess::request).
///
/// It holds a tag. While it exists, the number of hardware queues of the tag set cannot change, and
/// the last CPU of its hardware queue cannot go offline: both wait. So it should be executed or
/// dropped soon. A task that waits for one of them while it holds a request waits forever, and so
/// does the drop of the queue if the request is leaked.
///
/// # Examples
///
/// ```
/// use kernel::{block::mq::*, prelude::*, time::Delta};
///
/// /// Asks a device for `len` bytes.
/// fn read<T: Operations>(queue: &PassthroughQueue<T>, len: usize) -> Result<KVVec<u8>> {
///     let mut rq = queue.request(PassthroughOp::In)?;
///     rq.set_timeout(Delta::from_secs(60));
///     // The command would be stored in `rq.data()` here.
///     let rq = rq.with_buffer(KVVec::from_elem(0, len, GFP_KERNEL)?)?.execute()?;
///     rq.status()?;
///     rq.into_buffer().ok_or(EINVAL)
/// }
/// ```
#[must_use = "dropping a request that was not executed has no effect"]
pub struct Passthrough<'q, T: Operations> {
    pub(super) rq: OwnedRequest<'q, T>,
}

impl<'q, T: Operations> Passthrough<'q, T> {
    /// The largest number of pages that a buffer can be in: those of one bio.
    const MAX_PAGES: usize = 256;

    /// Allocates a request. Waits for a tag unless `flags` have `BLK_MQ_REQ_NOWAIT`.
    ///
    /// # Errors
    ///
    /// `EDEADLK` in a context that cannot do so.
    ///
    /// # Safety
    ///
    /// `queue` is that of a [`PassthroughQueue`] or a disk of `T`, of which neither the driver's
    /// data nor the tag set is dropped for `'q`. If `flags` have `BLK_MQ_REQ_RESERVED`, it is that
    /// of a [`PassthroughQueue`], and its tag set has reserved tags.
    pub(super) unsafe fn alloc(
        queue: NonNull<bindings::request_queue>,
        op: PassthroughOp,
        flags: bindings::blk_mq_req_flags_t,
    ) -> Result<Self> {
        if flags & bindings::BLK_MQ_REQ_NOWAIT == 0 {
            late_drop::check_may_wait()?;
        } else {
            // C uses the plug of the task, which must not happen in an interrupt.
            late_drop::check_may_sleep()?;
        }
        // SAFETY: By the safety requirement. The caller is a task that may wait if C does.
        let rq = from_err_ptr(unsafe {
            bindings::blk_mq_alloc_request(queue.as_ptr(), op.as_raw(), flags)
        })?;
        // INVARIANT: The request was just allocated, for such a queue.
        Ok(Passthrough {
            rq: OwnedRequest {
                rq: NonNull::new(Request::cast_from(rq)).ok_or(ENOMEM)?,
                buffer: None,
                is_reserved: flags & bindings::BLK_MQ_REQ_RESERVED != 0,
                _queue: PhantomData,
            },
        })
    }

    /// Sets the time after which [`Operations::timeout`] is called for the request, instead of that
    /// of the tag set.
    pub fn set_timeout(&mut self, timeout: Delta) {
        // SAFETY: By the type invariant of `OwnedRequest`, and nothing else accesses the field of a
        // request that is not started.
        unsafe { (*self.rq.request().as_raw()).timeout = timeout_jiffies(timeout) };
    }

    /// Makes the content of `buffer` the memory of the request, which is its
    /// [`transfer`](super::StartedRequest::transfer) in the driver.
    ///
    /// If the address or the length of the buffer has a bit in common with `dma_alignment` in the
    /// limits of the queue, which is 511 by default, the driver gets a copy. After a
    /// [`PassthroughOp::In`], the block layer copies that back, also if the request has failed.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request has a buffer already, if `buffer` is empty, if it is longer than
    /// `max_hw_sectors`, is in more than 256 pages, or does not comply with the limits otherwise;
    /// `ENOMEM` if out of memory; and `EDEADLK` in a context that cannot sleep. The request and the
    /// buffer are dropped then.
    pub fn with_buffer(mut self, mut buffer: KVVec<u8>) -> Result<Self> {
        late_drop::check_may_sleep()?;
        let address = buffer.as_mut_ptr();
        // C does not check that.
        let pages = (address as usize % PAGE_SIZE + buffer.len()).div_ceil(PAGE_SIZE);
        if self.rq.buffer.is_some() || pages > Self::MAX_PAGES {
            return Err(EINVAL);
        }
        let len = buffer.len().try_into().map_err(|_| EINVAL)?;
        let rq = self.rq.request().as_raw();
        // I/O may be waiting for the tag of this request, so reclaim must not wait for I/O.
        let mapped = memalloc_noio(|| {
            // INVARIANT: The request gets a bio with the memory of the buffer, or no bio.
            //
            // SAFETY: By the type invariant of `OwnedRequest`. The memory is valid until the
            // request has ended, since the handle keeps it, and it is not accessed before that.
            to_result(unsafe {
                bindings::blk_rq_map_kern(rq, address.cast(), len, bindings::GFP_KERNEL)
            })
        });
        self.rq.buffer = Some(buffer);
        match mapped {
            // C has an error of its own for a bio that would have to be split.
            Err(error) if error != ENOMEM => Err(EINVAL),
            mapped => mapped.map(|()| self),
        }
    }

    /// Passes the request to the driver, and waits until it has ended.
    ///
    /// Nothing interrupts the wait. If the device does not answer, it is [`Operations::timeout`]
    /// that has to end the request. A driver that does not implement it, or that resets the timer
    /// again and again, hangs the task. So does the tag set while it is stopped or quiesced.
    ///
    /// # Errors
    ///
    /// `EDEADLK` in a callback of the block layer or in another context that cannot wait for I/O.
    /// The request is dropped then. Otherwise the request was executed, and [`Executed::status`] is
    /// what the driver has ended it with.
    pub fn execute(mut self) -> Result<Executed<'q, T>> {
        Ok(Executed {
            status: self.rq.execute()?,
            rq: self.rq,
        })
    }
}

impl<T: Operations> Deref for Passthrough<'_, T> {
    type Target = Request<T>;

    fn deref(&self) -> &Request<T> {
        self.rq.request()
    }
}

/// A [`Passthrough`] request that has ended.
///
/// Its result is in [`Self::status`], in [`Self::buffer`], and in the driver's data of the request.
/// Dropping it frees the request. Until then it holds its tag, like [`Passthrough`].
#[must_use = "the status of a request should be looked at"]
pub struct Executed<'q, T: Operations> {
    status: BlkResult,
    rq: OwnedRequest<'q, T>,
}

impl<T: Operations> Executed<'_, T> {
    /// Returns what the driver has ended the request with.
    pub fn status(&self) -> BlkResult {
        self.status
    }

    /// Returns the buffer of the request.
    pub fn buffer(&self) -> Option<&[u8]> {
        self.rq.buffer.as_deref()
    }

    /// Frees the request, and returns its buffer.
    pub fn into_buffer(mut self) -> Option<KVVec<u8>> {
        self.rq.buffer.take()
    }
}

impl<T: Operations> Deref for Executed<'_, T> {
    type Target = Request<T>;

    fn deref(&self) -> &Request<T> {
        self.rq.request()
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
