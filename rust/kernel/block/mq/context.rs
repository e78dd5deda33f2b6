// SPDX-License-Identifier: GPL-2.0

//! Whether a driver may sleep while it queues a request.
//!
//! A callback that may sleep runs in a NOIO scope. Without it, memory reclaim could start I/O
//! inside `queue_rq`. That I/O would be added to the list of requests that the block layer is
//! issuing, and could wait for the same disk. No I/O waits for an ioctl, which runs outside of one.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::{
    alloc::{
        flags::GFP_NOWAIT,
        Flags, //
    },
    bindings,
    prelude::*,
    sync::rcu, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

mod private {
    pub trait Sealed {}
}

/// Whether `queue_rq` may sleep: [`NonBlocking`] or [`Blocking`].
///
/// It is an associated type of the driver. The tag set gets `BLK_MQ_F_BLOCKING` accordingly, so a
/// driver that sleeps cannot be used with a tag set that does not allow it.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{NonBlocking, Context, Blocking};
///
/// assert!(Blocking::MAY_SLEEP);
/// assert!(!NonBlocking::MAY_SLEEP);
/// ```
pub trait Context: private::Sealed + 'static {
    /// Whether `queue_rq` may sleep.
    const MAY_SLEEP: bool;
}

/// `queue_rq` must not sleep, which costs less.
pub struct NonBlocking(());

/// `queue_rq` may sleep: C's `BLK_MQ_F_BLOCKING`.
///
/// It may wait for memory. All callbacks that may sleep, but `ioctl`, run in a NOIO scope, see
/// [`memalloc_noio`].
pub struct Blocking(());

impl private::Sealed for NonBlocking {}
impl private::Sealed for Blocking {}

impl Context for NonBlocking {
    const MAY_SLEEP: bool = false;
}

impl Context for Blocking {
    const MAY_SLEEP: bool = true;
}

/// Calls `f` in a NOIO scope: C's `memalloc_noio_save()`.
///
/// Allocations of the task in that scope do not start I/O to reclaim memory, even with
/// `GFP_KERNEL`. A task that serves requests needs this, because such I/O may wait for the disk
/// that the task serves. The callbacks of a [`Blocking`] driver already run in such a scope. A
/// worker of the driver does not.
///
/// # Examples
///
/// ```
/// use kernel::{block::mq::memalloc_noio, prelude::*};
///
/// /// Allocates a buffer in a worker that serves requests.
/// fn buffer() -> Result<KBox<[u8; 512]>> {
///     memalloc_noio(|| Ok(KBox::new([0; 512], GFP_KERNEL)?))
/// }
/// # assert_eq!(buffer()?[0], 0);
/// # Ok::<(), Error>(())
/// ```
#[inline]
pub fn memalloc_noio<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: The function may be called in any context.
    let saved = unsafe { bindings::blk_noio_save() };
    let result = f();
    // SAFETY: `saved` is the return value of the matching call. Scopes nest as closures do, also if
    // an interrupt opens one.
    unsafe { bindings::blk_noio_restore(saved) };
    result
}

/// Returns whether the task is in a NOIO scope, as it is in each callback that may sleep, but not
/// in `ioctl`.
#[allow(dead_code)]
#[inline]
pub(crate) fn in_memalloc_noio() -> bool {
    // SAFETY: The function may be called in any context.
    unsafe { bindings::blk_in_noio() }
}

/// Calls a callback of a driver with context `C`, in a NOIO scope if it may sleep.
#[inline]
pub(super) fn run<C: Context, R>(callback: impl FnOnce() -> R) -> R {
    if C::MAY_SLEEP {
        memalloc_noio(callback)
    } else {
        callback()
    }
}

/// A lifetime that stands for one call of a callback. It is invariant, so no other lifetime can
/// replace it.
pub(super) type Invariant<'q> = PhantomData<fn(&'q ()) -> &'q ()>;

/// A token that proves that the code runs in a callback with context `C`.
///
/// It has no size, cannot be sent to another task, and does not outlive the callback.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{Context, IdleRequest, Operations, QueueContext};
///
/// fn wait_a_little<C: Context>(context: QueueContext<'_, C>) {
///     if context.may_sleep() {
///         // ...
///     }
/// }
///
/// fn serve<T: Operations>(rq: IdleRequest<'_, T>) {
///     let context = rq.context();
///     let rq = rq.start();
///     wait_a_little(context);
///     rq.end(Ok(()));
/// }
/// ```
///
/// # Invariants
///
/// A token for `'q` exists only in the task that runs the callback that `'q` stands for. If that
/// callback may sleep, the task is in a NOIO scope.
pub struct QueueContext<'q, C: Context> {
    _callback: Invariant<'q>,
    // Not `Send`, not `Sync`.
    _context: PhantomData<*mut C>,
}

impl<C: Context> Clone for QueueContext<'_, C> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Context> Copy for QueueContext<'_, C> {}

impl<C: Context> QueueContext<'_, C> {
    /// # Safety
    ///
    /// The caller runs in the callback that the lifetime stands for, called through [`run`], and
    /// its context is `C`.
    #[inline]
    pub(super) unsafe fn new() -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            _callback: PhantomData,
            _context: PhantomData,
        }
    }

    /// Returns whether the code may sleep.
    #[inline]
    pub const fn may_sleep(self) -> bool {
        C::MAY_SLEEP
    }

    /// Returns the flags to allocate memory with: `GFP_KERNEL` if the code may sleep, which is
    /// equal to `GFP_NOIO` in a NOIO scope, and `GFP_NOWAIT` otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::mq::{Context, QueueContext}, prelude::*};
    ///
    /// fn remember<C: Context>(tags: &mut KVec<u32>, tag: u32, cx: QueueContext<'_, C>) -> Result {
    ///     Ok(tags.push(tag, cx.gfp())?)
    /// }
    /// ```
    #[inline]
    pub const fn gfp(self) -> Flags {
        if C::MAY_SLEEP {
            GFP_KERNEL
        } else {
            GFP_NOWAIT
        }
    }
}

impl QueueContext<'_, NonBlocking> {
    /// Returns evidence that the RCU read side lock is held, as the block layer holds it while a
    /// callback runs that must not sleep. So no other needs to be taken, which costs more.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::mq::{IdleRequest, NonBlocking, Operations}, dma::bound::DmaDevice};
    ///
    /// fn can_be_mapped<T>(rq: &IdleRequest<'_, T>, dev: &DmaDevice) -> bool
    /// where
    ///     T: Operations<Context = NonBlocking>,
    /// {
    ///     dev.is_bound(rq.context().rcu_guard())
    /// }
    /// ```
    #[inline]
    pub fn rcu_guard(&self) -> &rcu::Guard {
        const_assert!(size_of::<rcu::Guard>() == 0);
        // SAFETY: The type has no size, so any aligned pointer will do. By the type invariant, the
        // caller runs in a callback that must not sleep, around which C holds the lock. `self` does
        // not outlive the callback, and cannot be sent.
        unsafe { NonNull::<rcu::Guard>::dangling().as_ref() }
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
