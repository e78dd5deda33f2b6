// SPDX-License-Identifier: GPL-2.0

//! What keeps the RCU callbacks of an external module in memory until they have run.

use crate::{
    alloc::flags::GFP_NOWAIT,
    late_drop::{
        may_wait,
        LateDrop, //
    },
    module_pin::ModulePin,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        barrier,
        rcu, //
    },
};

/// Whether callbacks were queued since the last time that they were waited for.
static QUEUED: Atomic<bool> = Atomic::new(false);

/// Keeps the module in memory until the callbacks that a container has queued have run.
///
/// # Invariants
///
/// If the container has values whose memory a callback frees, this has a [`Barrier`].
pub(crate) struct Callbacks {
    _barrier: Option<LateDrop<Barrier>>,
}

impl Callbacks {
    /// Keeps the callbacks in memory if a container has some.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EAGAIN` while the parameters of the module are being parsed; `ENOTSUPP` in a
    /// kernel without sysfs or Tasks RCU.
    pub(crate) fn new(has_callback: bool) -> Result<Self> {
        let barrier = if has_callback {
            let flags = if may_wait() { GFP_KERNEL } else { GFP_NOWAIT };
            let pin = ModulePin::of_this_code()?;
            Some(LateDrop::new(pin, Ok::<_, Error>(Barrier), flags)?)
        } else {
            None
        };
        // INVARIANT: As was just seen to.
        Ok(Self { _barrier: barrier })
    }

    /// Must be called after a callback was queued.
    #[inline]
    pub(crate) fn queued() {
        // The callback is queued before the flag is read. So either the flag is set here, or the
        // thread that clears it afterwards waits for the callback.
        barrier::smp_mb(barrier::Full);
        if !QUEUED.load(Relaxed) {
            QUEUED.store(true, Relaxed);
        }
    }
}

/// Waits for callbacks when it is dropped.
///
/// The thread that clears the flag waits while its own pin keeps the module in memory. The others
/// need not wait.
struct Barrier;

impl Drop for Barrier {
    fn drop(&mut self) {
        if QUEUED.xchg(false, Full) {
            rcu::rcu_barrier();
        }
    }
}
