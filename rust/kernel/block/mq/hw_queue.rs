// SPDX-License-Identifier: GPL-2.0

//! A hardware queue of a disk.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    context::memalloc_noio,
    disk_data::DiskData,
    queue_map::QueueType,
    Operations,
    RequestQueue, //
};
use crate::{
    bindings,
    late_drop::MAX_SIZE,
    prelude::*,
    static_lock_class,
    sync::SpinLock, //
};
use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    },
};

/// A hardware queue of a disk: C's `struct blk_mq_hw_ctx`.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::mq::{HwQueue, Operations, QueueType, RequestList, StartedRequest},
///     sync::SpinLock,
/// };
///
/// /// What the driver keeps for each hardware queue: the requests that are to be polled for.
/// struct Polled<T: Operations>(SpinLock<RequestList<T>>);
///
/// fn keep<T: Operations<HwData = Polled<T>>>(hw: HwQueue<'_, T>, rq: StartedRequest<T>) {
///     match hw.queue_type() {
///         QueueType::Poll => hw.data().0.lock().push_back(rq),
///         QueueType::Default | QueueType::Read => rq.end(Ok(())),
///     }
/// }
/// ```
///
/// # Invariants
///
/// For `'q`, `hctx` is valid and initialised by `init_hctx` of the vtable of `T`, and neither its
/// data nor that of its disk is dropped.
pub struct HwQueue<'q, T: Operations> {
    hctx: NonNull<bindings::blk_mq_hw_ctx>,
    _data: PhantomData<&'q T::HwData>,
}

impl<T: Operations> Clone for HwQueue<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Operations> Copy for HwQueue<'_, T> {}

impl<'q, T: Operations> HwQueue<'q, T> {
    /// # Safety
    ///
    /// The type invariant holds for `hctx`.
    #[inline]
    pub(super) unsafe fn from_raw(hctx: NonNull<bindings::blk_mq_hw_ctx>) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            hctx,
            _data: PhantomData,
        }
    }

    /// The hardware queue that `rq` was given to.
    ///
    /// # Safety
    ///
    /// `rq` is valid and has a hardware queue, for which the type invariant holds.
    #[inline]
    pub(super) unsafe fn of_request(rq: *const bindings::request) -> Self {
        // SAFETY: By the safety requirement.
        let hctx = unsafe { (*rq).mq_hctx };
        // SAFETY: By the safety requirement, it is valid, hence not null.
        let hctx = unsafe { NonNull::new_unchecked(hctx) };
        // SAFETY: By the safety requirement.
        unsafe { Self::from_raw(hctx) }
    }

    /// C's queue of the disk.
    #[inline]
    fn queue(self) -> *mut bindings::request_queue {
        // SAFETY: By the type invariant.
        unsafe { (*self.hctx.as_ptr()).queue }
    }

    /// The index of the queue among those of its disk.
    #[inline]
    pub fn index(self) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { (*self.hctx.as_ptr()).queue_num }
    }

    /// What the queue is for.
    #[inline]
    pub fn queue_type(self) -> QueueType {
        // SAFETY: By the type invariant.
        QueueType::from_raw(unsafe { (*self.hctx.as_ptr()).type_ })
    }

    /// What the driver keeps for this queue.
    #[inline]
    pub fn data(self) -> &'q T::HwData {
        // SAFETY: By the type invariant.
        let node = unsafe { (*self.hctx.as_ptr()).driver_data }.cast::<HwDataNode<T>>();
        // SAFETY: By the type invariant, `init_hctx` has set it, as `DeferredFree::install` does,
        // and the node is not dropped for `'q`.
        unsafe { &(*node).data }
    }

    /// All hardware queues of the disk.
    #[inline]
    pub fn request_queue(self) -> RequestQueue<'q, T> {
        // SAFETY: By the type invariant, this is a queue of a disk, so that is not null.
        let queue = unsafe { NonNull::new_unchecked(self.queue()) };
        // SAFETY: By the type invariant, the data of the disk is not dropped for `'q`. A disk that
        // is removed waits for its callbacks before it cancels the timer.
        unsafe { RequestQueue::from_raw(queue) }
    }

    /// What the driver keeps for the disk.
    #[inline]
    pub fn queue_data(self) -> &'q T::QueueData {
        // SAFETY: By the type invariant, this is a queue of a disk that was built with data of this
        // type, which is not dropped for `'q`.
        unsafe { DiskData::<T>::of_queue(self.queue()) }.data()
    }
}

/// A hardware queue as C knows it even while it is taken down and made again.
#[derive(Clone, Copy, PartialEq)]
struct HwQueueId {
    queue: *const bindings::request_queue,
    index: u32,
}

impl HwQueueId {
    /// # Safety
    ///
    /// `hctx` is valid and has its index.
    unsafe fn of(hctx: *const bindings::blk_mq_hw_ctx) -> Self {
        // SAFETY: By the safety requirement.
        let queue = unsafe { (*hctx).queue };
        // SAFETY: By the safety requirement.
        let index = unsafe { (*hctx).queue_num };
        Self { queue, index }
    }
}

/// The allocation that holds the driver's data of a hardware queue.
#[pin_data]
struct HwDataNode<T: Operations> {
    id: HwQueueId,
    /// The next in the list of [`DeferredFree`].
    next: *mut HwDataNode<T>,
    #[pin]
    data: T::HwData,
}

impl<T: Operations> HwDataNode<T> {
    /// Makes the data for `id` by `init`.
    fn new(id: HwQueueId, init: impl PinInit<T::HwData, Error>) -> Result<*mut Self> {
        const_assert!(size_of::<Self>() <= MAX_SIZE);
        let node = KBox::try_pin_init(
            try_pin_init!(Self {
                id,
                next: ptr::null_mut(),
                data <- init,
            }? Error),
            GFP_KERNEL,
        )?;
        // SAFETY: The node is not moved, only its address is kept.
        Ok(KBox::into_raw(unsafe { Pin::into_inner_unchecked(node) }))
    }
}

/// The head of a list of nodes that are linked by `next`.
///
/// # Invariants
///
/// It owns all nodes of the list, which ends with null.
pub(super) struct HwDataList<T: Operations>(*mut HwDataNode<T>);

impl<T: Operations> HwDataList<T> {
    fn new() -> Self {
        // INVARIANT: There is none.
        Self(ptr::null_mut())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    /// Takes over `node`.
    ///
    /// # Safety
    ///
    /// [`HwDataNode::new`] has made it, and no list owns it.
    unsafe fn push(&mut self, node: *mut HwDataNode<T>) {
        // SAFETY: By the safety requirement; callbacks look at the data only.
        unsafe { (*node).next = self.0 };
        // INVARIANT: By the safety requirement.
        self.0 = node;
    }

    /// Gives up the node for `id` that came last.
    fn take(&mut self, id: HwQueueId) -> Option<*mut HwDataNode<T>> {
        let mut link = &raw mut self.0;
        loop {
            // SAFETY: By the type invariant, as `link` points to the head or to `next` in a node.
            let node = unsafe { *link };
            if node.is_null() {
                return None;
            }
            // No reference to all of the node: callbacks may have one to the data.
            // SAFETY: By the type invariant, the node is there.
            let next = unsafe { &raw mut (*node).next };
            // SAFETY: As above.
            let found = unsafe { (*node).id } == id;
            if found {
                // SAFETY: As above.
                let after = unsafe { *next };
                // INVARIANT: The list goes on behind it.
                // SAFETY: As above, as `link` still points to where it did.
                unsafe { *link = after };
                return Some(node);
            }
            link = next;
        }
    }
}

// SAFETY: The list owns its nodes, and `HwData` is `Send`.
unsafe impl<T: Operations> Send for HwDataList<T> {}

impl<T: Operations> Drop for HwDataList<T> {
    fn drop(&mut self) {
        while !self.0.is_null() {
            // SAFETY: By the type invariant, the list owns the node, which `install` has made.
            let node = unsafe { KBox::from_raw(self.0) };
            self.0 = node.next;
            // Data of the driver that changes the number of queues when it is dropped would have
            // more of its kind dropped, without end; in a NOIO scope, it cannot.
            memalloc_noio(|| drop(KBox::into_pin(node)));
        }
    }
}

/// The name of a lock class, which has one address, as that of tag sets.
static DEFERRED_NAME: &CStr = c"block_mq_retired";

/// The data of hardware queues that are gone, while it may still be needed.
///
/// Callbacks may look at it: when the last request of a disk ends inside `queue_rq`, the disk can
/// be removed before `queue_rq` returns. Nothing but a read section of RCU, or SRCU, is left of the
/// callback then, so what `exit_hctx` takes down is kept here until such a section has passed.
///
/// Also, the queue may be there again before that, for want of anything new: see
/// [`Self::install`].
#[pin_data]
pub(super) struct DeferredFree<T: Operations> {
    #[pin]
    list: SpinLock<HwDataList<T>>,
}

impl<T: Operations> DeferredFree<T> {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- SpinLock::new(HwDataList::new(), DEFERRED_NAME, static_lock_class!()),
        })
    }

    /// Makes the data of `hctx` by what `make` returns, then hangs it there.
    ///
    /// When the number of queues changes, C takes each queue down to make it again, at its second
    /// try if need be. It cannot do without: it would go on with a null pointer. So where C would
    /// try again, this does; and if that fails, the queue has what it had before.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, has its index, and is being initialised, and no callback for it runs.
    pub(super) unsafe fn install<I: PinInit<T::HwData, Error>>(
        &self,
        hctx: *mut bindings::blk_mq_hw_ctx,
        make: impl Fn() -> I,
    ) -> Result {
        // SAFETY: By the safety requirement.
        let id = unsafe { HwQueueId::of(hctx) };
        let node = match HwDataNode::<T>::new(id, make()) {
            Ok(node) => node,
            Err(error) => {
                let old = self.list.lock().take(id).ok_or(error)?;
                HwDataNode::new(id, make())
                    // SAFETY: `take` took it off the list.
                    .inspect(|_| unsafe { self.list.lock().push(old) })
                    .unwrap_or(old)
            }
        };
        // SAFETY: By the safety requirement.
        unsafe { (*hctx).driver_data = node.cast() };
        Ok(())
    }

    /// Takes down what hangs at `hctx`.
    ///
    /// The pointer to it stays there, because callbacks that have not returned still follow it.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, [`Self::install`] succeeded for it, and no callback for it begins any more.
    pub(super) unsafe fn retire(&self, hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: By the safety requirement.
        let node = unsafe { (*hctx).driver_data }.cast::<HwDataNode<T>>();
        // SAFETY: By the safety requirement, this is what `install` has hung there. C calls this
        // once for each success of it, so no list owns the node.
        unsafe { self.list.lock().push(node) };
    }

    /// Gives up all that was retired before, which callbacks that run may still need.
    pub(super) fn take(&self) -> HwDataList<T> {
        mem::replace(&mut *self.list.lock(), HwDataList::new())
    }
}
