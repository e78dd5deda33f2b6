// SPDX-License-Identifier: GPL-2.0

//! A hardware queue of a disk.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    map::QueueKind,
    Operations, //
};
use crate::{
    bindings,
    new_spinlock,
    prelude::*,
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
///     block::mq::{HwQueue, Operations, QueueKind, RequestList, Started},
///     sync::SpinLock,
/// };
///
/// /// What the driver keeps for each hardware queue: the requests that are to be polled for.
/// struct Polled<T: Operations>(SpinLock<RequestList<T>>);
///
/// fn keep<T: Operations<HwData = Polled<T>>>(hw: HwQueue<'_, T>, rq: Started<T>) {
///     match hw.kind() {
///         QueueKind::Poll => hw.data().0.lock().push_back(rq),
///         QueueKind::Default | QueueKind::Read => rq.end(Ok(())),
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

    /// The index of the queue among those of its disk.
    #[inline]
    pub fn index(self) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { (*self.hctx.as_ptr()).queue_num }
    }

    /// What the queue is for.
    #[inline]
    pub fn kind(self) -> QueueKind {
        // SAFETY: By the type invariant.
        QueueKind::from_raw(unsafe { (*self.hctx.as_ptr()).type_ })
    }

    /// What the driver keeps for this queue.
    #[inline]
    pub fn data(self) -> &'q T::HwData {
        // SAFETY: By the type invariant, `init_hctx` has set `driver_data`, which `Slot::install`
        // documents, and the slot is not dropped for `'q`.
        unsafe { &(*(*self.hctx.as_ptr()).driver_data.cast::<Slot<T>>()).data }
    }

    /// What the driver keeps for the disk.
    #[inline]
    pub fn queue_data(self) -> &'q T::QueueData {
        // SAFETY: By the type invariant, this is a queue of a disk that was built with data of this
        // type, which is not dropped for `'q`.
        unsafe {
            &*(*(*self.hctx.as_ptr()).queue)
                .queuedata
                .cast::<T::QueueData>()
        }
    }
}

/// The allocation that holds the driver's data of a hardware queue.
#[pin_data]
pub(super) struct Slot<T: Operations> {
    /// The next in the list of [`Retired`].
    next: *mut Slot<T>,
    #[pin]
    data: T::HwData,
}

impl<T: Operations> Slot<T> {
    /// Makes the data of `hctx` by `init`, then hangs it there.
    ///
    /// # Safety
    ///
    /// `hctx` is valid and being initialised, and what hung there was retired, then reaped.
    pub(super) unsafe fn install(
        hctx: *mut bindings::blk_mq_hw_ctx,
        init: impl PinInit<T::HwData, Error>,
    ) -> Result {
        let slot = KBox::try_pin_init(
            try_pin_init!(Slot::<T> {
                next: ptr::null_mut(),
                data <- init,
            }? Error),
            GFP_KERNEL,
        )?;
        // SAFETY: The slot is not moved, only its address is kept.
        let slot = KBox::into_raw(unsafe { Pin::into_inner_unchecked(slot) });
        // SAFETY: By the safety requirement.
        unsafe { (*hctx).driver_data = slot.cast() };
        Ok(())
    }
}

/// The head of a chain of slots that are linked by `next`.
///
/// # Invariants
///
/// It owns all slots of the chain, which ends with null.
struct Chain<T: Operations>(*mut Slot<T>);

// SAFETY: The chain owns its slots, and `HwData` is `Send`.
unsafe impl<T: Operations> Send for Chain<T> {}

impl<T: Operations> Drop for Chain<T> {
    fn drop(&mut self) {
        while !self.0.is_null() {
            // SAFETY: By the type invariant, the chain owns the slot, which `install` has made.
            let slot = unsafe { KBox::from_raw(self.0) };
            self.0 = slot.next;
            drop(KBox::into_pin(slot));
        }
    }
}

/// The data of hardware queues that are gone, while a callback may still look at it.
///
/// When the last request of a disk ends inside `queue_rq`, the disk can be removed before
/// `queue_rq` returns: nothing but a read section of RCU, or SRCU, is left of the callback then. So
/// what `exit_hctx` takes down is kept here until such a section has passed.
#[pin_data]
pub(super) struct Retired<T: Operations> {
    #[pin]
    chain: SpinLock<Chain<T>>,
}

impl<T: Operations> Retired<T> {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: The chain is empty.
            chain <- new_spinlock!(Chain(ptr::null_mut()), "block_mq_retired"),
        })
    }

    /// Takes down what hangs at `hctx`.
    ///
    /// The pointer to it stays there, because callbacks that have not returned still follow it; C
    /// initialises the queue again only after [`Self::reap`].
    ///
    /// # Safety
    ///
    /// `hctx` is valid, [`Slot::install`] succeeded for it, and no callback for it begins any more.
    pub(super) unsafe fn retire(&self, hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: By the safety requirement.
        let slot = unsafe { (*hctx).driver_data }.cast::<Slot<T>>();
        let mut chain = self.chain.lock();
        // SAFETY: By the safety requirement, this is the slot that `install` has made; callbacks
        // look at its data only.
        unsafe { (*slot).next = chain.0 };
        // INVARIANT: C calls this once for each slot, so it is in no chain yet.
        chain.0 = slot;
    }

    /// Drops all that was retired before, after running `wait` outside of all locks.
    ///
    /// `wait` waits for the callbacks that run.
    pub(super) fn reap(&self, wait: impl FnOnce()) {
        // INVARIANT: The chain that is left is empty.
        let chain = mem::replace(&mut *self.chain.lock(), Chain(ptr::null_mut()));
        wait();
        drop(chain);
    }
}
