// SPDX-License-Identifier: GPL-2.0

//! Whether a driver may sleep while it queues a request.
//!
//! A callback that may sleep runs in a NOIO scope. Without it, reclaim could start I/O from inside
//! of `queue_rq`: that joins the list of requests which the block layer is issuing there, and can
//! wait for the very disk.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::{
    alloc::{
        flags::GFP_NOWAIT,
        Flags, //
    },
    bindings,
    prelude::*, //
};
use core::marker::PhantomData;

mod private {
    pub trait Sealed {}
}

/// Whether `queue_rq` may sleep; one of [`NonBlocking`] or [`Blocking`].
///
/// It is part of the type of a driver. The tag set is made accordingly, so a driver that sleeps
/// cannot be used with a tag set that does not let it.
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
    /// Whether it may.
    const MAY_SLEEP: bool;
}

/// `queue_rq` must not sleep. It costs less.
pub struct NonBlocking(());

/// `queue_rq` may sleep: C's `BLK_MQ_F_BLOCKING`.
///
/// It may wait for memory. All callbacks that may sleep run in a NOIO context, see
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

/// Runs `f` in a NOIO scope: C's `memalloc_noio_save()`.
///
/// Memory that the task allocates meanwhile is not reclaimed by I/O, even with `GFP_KERNEL`. A task
/// needs that while it serves requests, because such I/O may wait for the disk that it serves. The
/// callbacks of a [`Blocking`] driver run in such a scope already; a worker of the driver does
/// not.
///
/// # Examples
///
/// ```
/// use kernel::{block::mq::memalloc_noio, prelude::*};
///
/// /// What a worker needs to serve a request.
/// fn buffer() -> Result<KBox<[u8; 512]>> {
///     memalloc_noio(|| Ok(KBox::new([0; 512], GFP_KERNEL)?))
/// }
/// # assert_eq!(buffer()?[0], 0);
/// # Ok::<(), Error>(())
/// ```
#[inline]
pub fn memalloc_noio<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: Any context may call it.
    let saved = unsafe { bindings::blk_noio_save() };
    let result = f();
    // SAFETY: It is what the pairing call has returned: scopes nest as closures do, also where one
    // is that of an interrupt.
    unsafe { bindings::blk_noio_restore(saved) };
    result
}

/// Whether the task is in a NOIO context, as it is inside each callback that may sleep.
#[allow(dead_code)]
#[inline]
pub(crate) fn in_memalloc_noio() -> bool {
    // SAFETY: Any context may call it.
    unsafe { bindings::blk_in_noio() }
}

/// Runs a callback of a driver with context `C`: in a NOIO scope if it may sleep.
#[inline]
pub(super) fn run<C: Context, R>(callback: impl FnOnce() -> R) -> R {
    if C::MAY_SLEEP {
        memalloc_noio(callback)
    } else {
        callback()
    }
}

/// A lifetime that stands for one run of a callback: no other can take its place.
pub(super) type Invariant<'q> = PhantomData<fn(&'q ()) -> &'q ()>;

/// A token which proves that the code runs inside a callback with context `C`.
///
/// It takes no space, cannot be sent to another task, and does not outlive the callback.
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
/// One exists for `'q` only in the task that runs the callback which `'q` stands for. If that may
/// sleep, it is in a NOIO scope.
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
    /// The caller runs in the callback that the lifetime stands for, by [`run`], and its context is
    /// `C`.
    #[inline]
    pub(super) unsafe fn new() -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            _callback: PhantomData,
            _context: PhantomData,
        }
    }

    /// Whether the code may sleep.
    #[inline]
    pub const fn may_sleep(self) -> bool {
        C::MAY_SLEEP
    }

    /// The flags to allocate memory with here: `GFP_KERNEL` where sleeping is allowed, which means
    /// `GFP_NOIO` there; `GFP_NOWAIT` elsewhere.
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

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
