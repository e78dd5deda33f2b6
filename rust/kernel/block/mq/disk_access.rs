// SPDX-License-Identifier: GPL-2.0

//! The access that a task has to a disk from outside of a request, until the disk is removed.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::{
    disk_data::DiskData,
    passthrough::{
        Passthrough,
        PassthroughOp, //
    },
    Operations, //
};
use crate::{
    bindings,
    late_drop,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        Completion, //
    },
    types::ScopeGuard, //
};
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};

/// The bit of `DiskGate::state` that says that the gate is closed. The others count.
const CLOSED: u64 = 1 << 63;

/// Lets tasks access a disk until it is removed, which waits for them.
///
/// # Invariants
///
/// The state has [`CLOSED`], or `queue` is that of a disk. Nothing of the disk is dropped before
/// [`Self::close`] has returned, which waits for as many tasks as the state counts.
#[pin_data]
pub(crate) struct DiskGate {
    queue: Atomic<*mut bindings::request_queue>,
    state: Atomic<u64>,
    #[pin]
    left: Completion,
}

impl DiskGate {
    /// Makes a gate that is closed.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            // INVARIANT: It is closed.
            pin_init!(Self {
                queue: Atomic::new(ptr::null_mut()),
                state: Atomic::new(CLOSED),
                left <- Completion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Lets tasks in, before the disk is added. This is called once.
    ///
    /// # Safety
    ///
    /// The disk with that queue is there, and so are its driver's data and tag set, until
    /// [`Self::close`] has returned. The data of the queue is a [`DiskData`].
    pub(crate) unsafe fn open(&self, queue: NonNull<bindings::request_queue>) {
        self.queue.store(queue.as_ptr(), Relaxed);
        // INVARIANT: By the safety requirement.
        self.state.store(0, Release);
    }

    /// Lets no task in any more, and waits for those that are in. This is called once.
    pub(crate) fn close(&self) {
        if self.change(|state| Some(state | CLOSED)) != Some(CLOSED) {
            self.left.wait_for_completion();
        }
    }

    /// Changes the state, unless `f` returns [`None`]. Returns the new one.
    fn change(&self, f: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut old = self.state.load(Relaxed);
        loop {
            let new = f(old)?;
            match self.state.cmpxchg(old, new, Full) {
                Ok(_) => return Some(new),
                Err(now) => old = now,
            }
        }
    }

    /// Calls `f` with the queue, which remains until `f` returns. May sleep.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the gate is closed.
    pub(crate) fn enter<R>(
        &self,
        f: impl FnOnce(NonNull<bindings::request_queue>) -> Result<R>,
    ) -> Result<R> {
        self.change(|state| (state & CLOSED == 0).then_some(state + 1))
            .ok_or(ENODEV)?;
        // INVARIANT: `close` waits until this is undone.
        let _inside = ScopeGuard::new(|| {
            if self.change(|state| Some(state - 1)) == Some(CLOSED) {
                self.left.complete_all();
            }
        });
        // By the type invariant it is not null.
        f(NonNull::new(self.queue.load(Relaxed)).ok_or(ENODEV)?)
    }
}

/// The access to a disk that a task has for as long as a callback lasts.
///
/// # Examples
///
/// A disk whose ioctl 1 returns the square of a number, which a request calculates:
///
/// ```
/// use kernel::{
///     block::mq::*,
///     prelude::*,
///     sync::atomic::{Atomic, Relaxed},
/// };
///
/// struct Driver;
///
/// #[vtable]
/// impl Operations for Driver {
///     type RequestData = Atomic<u32>;
///
///     fn init_request(_: &()) -> impl PinInit<Atomic<u32>> {
///         Atomic::new(0)
///     }
///
///     fn ioctl(
///         disk: &DiskAccess<'_, Self>,
///         _caller: IoctlCaller,
///         cmd: u32,
///         arg: usize,
///     ) -> Result<u32> {
///         if cmd != 1 {
///             return Err(ENOTTY);
///         }
///         let rq = disk.request(PassthroughOp::In)?;
///         rq.data().store(arg.try_into()?, Relaxed);
///         let rq = rq.execute()?;
///         rq.status()?;
///         Ok(rq.data().load(Relaxed))
///     }
///
///     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
///         if rq.op() != Op::DriverIn {
///             return Err(rq.reject(kernel::block::BlkStatus::NOTSUPP));
///         }
///         let rq = rq.start();
///         let number = rq.data().load(Relaxed);
///         rq.data().store(number.wrapping_mul(number), Relaxed);
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
/// ```
///
/// # Invariants
///
/// `queue` is that of a disk of `T`, of which nothing is dropped for `'a`.
pub struct DiskAccess<'a, T: Operations> {
    queue: NonNull<bindings::request_queue>,
    _disk: PhantomData<(&'a DiskGate, *const T)>,
}

impl<T: Operations> DiskAccess<'_, T> {
    /// # Safety
    ///
    /// `queue` is that of a disk of `T`, of which nothing is dropped during the lifetime.
    pub(crate) unsafe fn from_raw(queue: NonNull<bindings::request_queue>) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            queue,
            _disk: PhantomData,
        }
    }

    /// Returns the driver's data of the disk.
    pub fn queue_data(&self) -> &T::QueueData {
        // SAFETY: By the type invariant.
        unsafe { DiskData::<T>::of_queue(self.queue.as_ptr()) }.data()
    }

    /// Allocates a request of the disk, which belongs to a hardware queue of the current CPU, of
    /// the type [`QueueType::Default`](super::QueueType::Default).
    ///
    /// Waits until a tag is free, and while the disk is frozen. The removal of the disk waits until
    /// the request is dropped. If the disk has an I/O scheduler, that does not see the request.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the disk is being removed; `EDEADLK` in a callback of the block layer or in
    /// another context that cannot wait for I/O.
    pub fn request(&self, op: PassthroughOp) -> Result<Passthrough<'_, T>> {
        // SAFETY: By the type invariant.
        unsafe { Passthrough::alloc(self.queue, op, 0) }
    }
}

/// A handle to a disk, which may have been removed, of a driver that has
/// [`Operations::ioctl`].
///
/// Others than those who have the disk open get access to it by this: the users of a character
/// device for the same hardware, for example.
///
/// # Examples
///
/// ```
/// use kernel::{block::{gendisk::GenDisk, mq::*}, prelude::*};
///
/// fn command<T: Operations>(handle: &DiskHandle<T>) -> Result {
///     // `ENODEV` if the disk was removed.
///     handle.access(|disk| {
///         let rq = disk.request(PassthroughOp::In)?.execute()?;
///         Ok(rq.status()?)
///     })
/// }
///
/// fn handle_of<T: Operations>(disk: &GenDisk<T>) -> Option<DiskHandle<T>> {
///     disk.handle()
/// }
/// ```
///
/// # Invariants
///
/// The gate is that of a disk of `T`.
pub struct DiskHandle<T: Operations> {
    gate: Arc<DiskGate>,
    _driver: PhantomData<fn(T)>,
}

impl<T: Operations> DiskHandle<T> {
    /// # Safety
    ///
    /// The gate is that of a disk of `T`.
    pub(crate) unsafe fn new(gate: Arc<DiskGate>) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            gate,
            _driver: PhantomData,
        }
    }

    /// Calls `f` with access to the disk. The removal of the disk waits for that, so `f` must not
    /// wait for the removal, nor drop the disk: that would wait forever.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the disk was removed; `EDEADLK` in a context that cannot sleep; or the error of
    /// `f`.
    pub fn access<R>(&self, f: impl FnOnce(&DiskAccess<'_, T>) -> Result<R>) -> Result<R> {
        late_drop::check_may_sleep()?;
        self.gate.enter(|queue| {
            // SAFETY: By the type invariant, it is the queue of a disk of `T`. The gate is not
            // closed before this returns.
            f(&unsafe { DiskAccess::from_raw(queue) })
        })
    }
}

impl<T: Operations> Clone for DiskHandle<T> {
    fn clone(&self) -> Self {
        // INVARIANT: As for `self`.
        Self {
            gate: self.gate.clone(),
            _driver: PhantomData,
        }
    }
}

/// How the task that calls [`Operations::ioctl`] has opened the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IoctlCaller {
    /// It may write to the disk.
    pub can_write: bool,
    /// It has opened a partition, not the whole disk.
    pub is_partition: bool,
    /// Its ABI is that of 32 bits.
    pub is_compat: bool,
}

// The tests expect that dropping a disk removes it at once.
#[cfg(all(CONFIG_RUST_KUNIT_TESTS, CONFIG_PREEMPT_COUNT))]
mod tests;
