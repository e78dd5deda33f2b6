// SPDX-License-Identifier: GPL-2.0

//! Whether a driver may sleep while it queues a request.

use crate::bindings;
use core::marker::PhantomData;

mod private {
    pub trait Sealed {}
}

/// Whether `queue_rq` may sleep; one of [`Atomic`] or [`Sleepable`].
///
/// It is part of the type of a driver. The tag set is made accordingly, so a driver that sleeps
/// cannot be used with a tag set that does not let it.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{Atomic, Context, Sleepable};
///
/// assert!(Sleepable::MAY_SLEEP);
/// assert!(!Atomic::MAY_SLEEP);
/// ```
pub trait Context: private::Sealed + 'static {
    /// Whether it may.
    const MAY_SLEEP: bool;
}

/// `queue_rq` must not sleep. It costs less.
pub struct Atomic(());

/// `queue_rq` may sleep: C's `BLK_MQ_F_BLOCKING`.
///
/// It may wait for memory, but not for I/O that frees some, as with `GFP_KERNEL`: that might wait
/// for the very disk, and goes to the list of which the request was taken.
pub struct Sleepable(());

impl private::Sealed for Atomic {}
impl private::Sealed for Sleepable {}

impl Context for Atomic {
    const MAY_SLEEP: bool = false;
}

impl Context for Sleepable {
    const MAY_SLEEP: bool = true;
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
/// use kernel::block::mq::{Context, Idle, Operations, Scope};
///
/// fn wait_a_little<C: Context>(scope: Scope<'_, C>) {
///     if scope.may_sleep() {
///         // ...
///     }
/// }
///
/// fn serve<T: Operations>(rq: Idle<'_, T>) {
///     let scope = rq.scope();
///     let rq = rq.start();
///     wait_a_little(scope);
///     rq.end(Ok(()));
/// }
/// ```
///
/// # Invariants
///
/// One exists for `'q` only in the task that runs the callback which `'q` stands for.
pub struct Scope<'q, C: Context> {
    _callback: Invariant<'q>,
    // Not `Send`, not `Sync`.
    _context: PhantomData<*mut C>,
}

impl<C: Context> Clone for Scope<'_, C> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Context> Copy for Scope<'_, C> {}

impl<C: Context> Scope<'_, C> {
    /// # Safety
    ///
    /// The caller runs in the callback that the lifetime stands for, and its context is `C`.
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

    /// The allocation flags to use here: `GFP_NOIO` where sleeping is allowed, since memory must
    /// not be reclaimed by I/O to the disk that waits for it; `GFP_NOWAIT` elsewhere.
    #[allow(dead_code)]
    #[inline]
    pub(crate) const fn gfp(self) -> bindings::gfp_t {
        if C::MAY_SLEEP {
            GFP_NOIO
        } else {
            bindings::GFP_NOWAIT
        }
    }
}

/// C's `GFP_NOIO`, which the bindings lack; `rust/helpers/blk.c` pins it.
const GFP_NOIO: bindings::gfp_t =
    1 << bindings::___GFP_DIRECT_RECLAIM_BIT | 1 << bindings::___GFP_KSWAPD_RECLAIM_BIT;
