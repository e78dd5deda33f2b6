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

/// A hardware queue of a disk, or of a [`PassthroughQueue`](super::PassthroughQueue): C's
/// `struct blk_mq_hw_ctx`.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::mq::{HwQueue, Operations, PendingList, QueueType, StartedRequest},
///     sync::SpinLock,
/// };
///
/// /// Driver data of a hardware queue: requests to be polled.
/// struct Polled<T: Operations>(SpinLock<PendingList<T>>);
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

    /// Returns the hardware queue of `rq`.
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

    /// Returns C's request queue of the disk.
    #[inline]
    fn queue(self) -> *mut bindings::request_queue {
        // SAFETY: By the type invariant.
        unsafe { (*self.hctx.as_ptr()).queue }
    }

    /// Returns the index of the queue in its disk.
    #[inline]
    pub fn index(self) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { (*self.hctx.as_ptr()).queue_num }
    }

    /// Returns the type of the queue.
    #[inline]
    pub fn queue_type(self) -> QueueType {
        // SAFETY: By the type invariant.
        QueueType::from_raw(unsafe { (*self.hctx.as_ptr()).type_ })
    }

    /// Returns the driver data of the queue.
    #[inline]
    pub fn data(self) -> &'q T::HwData {
        // SAFETY: By the type invariant.
        let node = unsafe { (*self.hctx.as_ptr()).driver_data }.cast::<HwDataNode<T>>();
        // SAFETY: By the type invariant, `init_hctx` has set it through `DeferredFree::install`,
        // and the node is not dropped for `'q`.
        unsafe { &(*node).data }
    }

    /// Returns the request queue of the disk.
    #[inline]
    pub fn request_queue(self) -> RequestQueue<'q, T> {
        // SAFETY: By the type invariant, this is a hardware queue of a disk, so its request queue
        // is not null.
        let queue = unsafe { NonNull::new_unchecked(self.queue()) };
        // SAFETY: By the type invariant, the data of the disk is not dropped for `'q`. The removal
        // of a disk waits for the callbacks before it cancels the timer.
        unsafe { RequestQueue::from_raw(queue) }
    }

    /// Returns the driver data of the disk.
    #[inline]
    pub fn queue_data(self) -> &'q T::QueueData {
        // SAFETY: By the type invariant, this is a hardware queue of a disk that was built with
        // data of this type, which is not dropped for `'q`.
        unsafe { DiskData::<T>::of_queue(self.queue()) }.data()
    }
}

/// The identity of a hardware queue, which stays the same when C exits the queue and initialises it
/// again.
#[derive(Clone, Copy, PartialEq)]
struct HwQueueId {
    queue: *const bindings::request_queue,
    index: u32,
}

impl HwQueueId {
    /// # Safety
    ///
    /// `hctx` is valid, and its index is set.
    unsafe fn of(hctx: *const bindings::blk_mq_hw_ctx) -> Self {
        // SAFETY: By the safety requirement.
        let queue = unsafe { (*hctx).queue };
        // SAFETY: By the safety requirement.
        let index = unsafe { (*hctx).queue_num };
        Self { queue, index }
    }
}

/// The allocation that contains the driver's data of a hardware queue.
#[pin_data]
struct HwDataNode<T: Operations> {
    id: HwQueueId,
    /// The next node in the list of [`DeferredFree`].
    next: *mut HwDataNode<T>,
    #[pin]
    data: T::HwData,
}

impl<T: Operations> HwDataNode<T> {
    /// Allocates a node for `id`, and initialises its data by `init`.
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
        // SAFETY: The node is not moved. Only its address is used.
        Ok(KBox::into_raw(unsafe { Pin::into_inner_unchecked(node) }))
    }
}

/// A list of nodes that are linked by `next`.
///
/// # Invariants
///
/// The field is the head of the list, which ends with null. The list owns all its nodes.
pub(super) struct HwDataList<T: Operations>(*mut HwDataNode<T>);

impl<T: Operations> HwDataList<T> {
    fn new() -> Self {
        // INVARIANT: The list is empty.
        Self(ptr::null_mut())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    /// Adds `node` at the head of the list, and takes ownership of it.
    ///
    /// # Safety
    ///
    /// `node` was allocated by [`HwDataNode::new`], and no list owns it.
    unsafe fn push(&mut self, node: *mut HwDataNode<T>) {
        // SAFETY: By the safety requirement. Callbacks access `data` only.
        unsafe { (*node).next = self.0 };
        // INVARIANT: By the safety requirement.
        self.0 = node;
    }

    /// Removes the node for `id` that was added last, and passes ownership of it to the caller.
    fn take(&mut self, id: HwQueueId) -> Option<*mut HwDataNode<T>> {
        let mut link = &raw mut self.0;
        loop {
            // SAFETY: By the type invariant, as `link` points to the head or to the `next` field of
            // a node.
            let node = unsafe { *link };
            if node.is_null() {
                return None;
            }
            // No reference to the whole node is created, because callbacks may hold a reference to
            // its data.
            // SAFETY: By the type invariant, the list owns the node, so it is allocated.
            let next = unsafe { &raw mut (*node).next };
            // SAFETY: As above.
            let found = unsafe { (*node).id } == id;
            if found {
                // SAFETY: As above.
                let after = unsafe { *next };
                // INVARIANT: The list continues after the node.
                // SAFETY: As above. `link` was not changed since.
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
            // SAFETY: By the type invariant, the list owns the node, which `HwDataNode::new`
            // allocated.
            let node = unsafe { KBox::from_raw(self.0) };
            self.0 = node.next;
            // If driver data changed the number of queues when it is dropped, more data would be
            // dropped, in an endless recursion. A NOIO scope prevents such a change.
            memalloc_noio(|| drop(KBox::into_pin(node)));
        }
    }
}

/// The name of a lock class. It has a single address, as the name of the class for tag sets.
static DEFERRED_NAME: &CStr = c"block_mq_retired";

/// Driver data of removed hardware queues, to be freed after a grace period.
///
/// Callbacks may still use the data: when the last request of a disk ends inside `queue_rq`, the
/// disk can be removed before `queue_rq` returns. The callback is then protected only by its RCU or
/// SRCU read-side critical section, so data that `exit_hctx` removes is kept here for a grace
/// period.
///
/// If new data for a queue cannot be initialised, [`Self::install`] takes its old data from here.
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

    /// Initialises driver data by what `make` returns, and stores it in `hctx`.
    ///
    /// When the number of queues changes, C exits each queue and initialises it again, with a
    /// second attempt after a failure. After a second failure, C would dereference a NULL pointer.
    /// Therefore, this function makes the second attempt itself, and if that fails too, the queue
    /// gets its old data.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, its index is set, it is being initialised, and no callback for it runs.
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
                    // SAFETY: `take` removed `old` from the list.
                    .inspect(|_| unsafe { self.list.lock().push(old) })
                    .unwrap_or(old)
            }
        };
        // SAFETY: By the safety requirement.
        unsafe { (*hctx).driver_data = node.cast() };
        Ok(())
    }

    /// Moves the driver data of `hctx` to the list.
    ///
    /// `hctx` keeps the pointer to it, because callbacks that have not returned still use it.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, [`Self::install`] succeeded for it, this is called once for each such
    /// success, and no callback for it starts after this.
    pub(super) unsafe fn retire(&self, hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: By the safety requirement.
        let node = unsafe { (*hctx).driver_data }.cast::<HwDataNode<T>>();
        // SAFETY: By the safety requirement, this is the node that `install` stored there, and no
        // list owns it.
        unsafe { self.list.lock().push(node) };
    }

    /// Returns all data in the list, which running callbacks may still use.
    pub(super) fn take(&self) -> HwDataList<T> {
        mem::replace(&mut *self.list.lock(), HwDataList::new())
    }
}
