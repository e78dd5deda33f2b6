// SPDX-License-Identifier: GPL-2.0

//! The requests that disks share.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    disk_data::DiskData,
    hw_queue::HwDataList,
    pdu::cmd_size,
    queue_map::possible_cpus,
    tag_set_inner::TagSetInner,
    vtable::Vtable, //
    Context,
    Operations,
    QueueCounts,
};
use crate::{
    bindings,
    error::to_result,
    late_drop::{
        self,
        LateDrop, //
    },
    module::this_module,
    module_pin::ModulePin,
    prelude::*,
    static_lock_class,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        msecs_to_jiffies, //
        Delta,
        Jiffies,
    },
    types::Opaque, //
};

/// The name of the class of the locks of all tag sets. It has one address, as lockdep asks: generic
/// code is a part of each module that uses it, and so are the names in it.
static RESIZE_NAME: &CStr = c"block_mq_resize";

/// The requests of one disk, or of several that share them: C's `struct blk_mq_tag_set`.
///
/// # Examples
///
/// ```
/// # use kernel::{block::mq::*, prelude::*};
/// # struct Driver;
/// # #[vtable]
/// # impl Operations for Driver {
/// #     type Context = Blocking;
/// #     type TagSetData = ();
/// #     type QueueData = u32;
/// #     type HwData = ();
/// #     type RequestData = ();
/// #     type Timer = NoTimer;
/// #
/// #     fn init_hw_queue(_: &u32, _: &(), _: u32) -> impl PinInit<(), Error> {
/// #         Ok(())
/// #     }
/// #
/// #     fn init_request(_: &()) -> impl PinInit<()> {}
/// #
/// #     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
/// #         rq.start().end(Ok(()));
/// #         Ok(())
/// #     }
/// # }
/// let options = TagSetOptions { depth: 128, ..TagSetOptions::default() };
/// let tags = TagSet::<Driver>::new(options, Ok(()))?;
/// assert_eq!(tags.depth(), 128);
///
/// // This driver does not poll.
/// let polled = QueueCounts { poll: 1, ..tags.queue_counts() };
/// assert_eq!(tags.set_queue_counts(polled), Err(EINVAL));
/// assert_eq!(tags.queue_counts().poll, 0);
/// # Ok::<(), Error>(())
/// ```
///
/// The last handle may be dropped anywhere. Where waiting is impossible, a worker frees the
/// requests a little later.
pub struct TagSet<T: Operations> {
    set: LateDrop<Set<T>>,
}

/// A tag set, whose drop waits.
///
/// # Invariants
///
/// `inner` is allocated with the vtable of `T`, and its `driver_data` points to `shared`.
#[pin_data(PinnedDrop)]
struct Set<T: Operations> {
    #[pin]
    shared: TagSetInner<T>,
    /// Held while hardware queues come or go other than under locks of C, until callbacks do not
    /// need any more what was retired meanwhile.
    #[pin]
    resize: Mutex<()>,
    #[pin]
    inner: Opaque<bindings::blk_mq_tag_set>,
}

// SAFETY: C's tag set is synchronised, and the driver's data is `Send` and `Sync`.
unsafe impl<T: Operations> Send for Set<T> {}

// SAFETY: As above.
unsafe impl<T: Operations> Sync for Set<T> {}

impl<T: Operations> TagSet<T> {
    /// How many maps a driver has a use for: the last is that of the queues it polls.
    const MAX_MAPS: u32 = if T::HAS_POLL {
        QueueCounts::MAX_MAPS
    } else {
        QueueCounts::MAX_MAPS - 1
    };

    /// Makes a tag set.
    ///
    /// Fails with `EINVAL` if an option makes no sense or asks for polled queues of a driver that
    /// does not poll, `ENOMEM` if out of memory, `EAGAIN` while the parameters of the module are
    /// being parsed, `ENOTSUPP` in a module for a kernel without sysfs, or with what the
    /// initialisers fail with.
    pub fn new(
        options: TagSetOptions,
        data: impl PinInit<T::TagSetData, Error>,
    ) -> Result<Arc<Self>> {
        let counts = options.queues.validate(possible_cpus(), Self::MAX_MAPS)?;
        let pin = ModulePin::new(this_module::<T::OwnerModule>())?;
        let set = LateDrop::new(
            pin,
            try_pin_init!(&this in Set {
                shared <- TagSetInner::new(counts, data),
                resize <- Mutex::new((), RESIZE_NAME, static_lock_class!()),
                // INVARIANT: `shared` is initialised, and `this` does not move.
                inner <- Opaque::try_ffi_init(move |slot: *mut bindings::blk_mq_tag_set| {
                    // SAFETY: `this` is valid for the field projection.
                    let shared = unsafe { &raw const (*this.as_ptr()).shared };
                    // SAFETY: `slot` is valid for writes.
                    unsafe { slot.write(options.as_raw(counts, shared)?) };
                    // SAFETY: `slot` holds what drivers set, and zeros, and does not move. The
                    // callbacks that run meanwhile find `shared`. After a failure, C has exited the
                    // requests that it had initialised, and does not come back to `slot`.
                    to_result(unsafe { bindings::blk_alloc_tag_set(slot) })
                }),
            }? Error),
            GFP_KERNEL,
        )?;
        Ok(Arc::new(Self { set }, GFP_KERNEL)?)
    }

    /// What the driver keeps for the tag set.
    pub fn data(&self) -> &T::TagSetData {
        &self.set.shared.data
    }

    /// How many hardware queues each disk has now.
    pub fn queue_counts(&self) -> QueueCounts {
        self.set.shared.maps.mapped()
    }

    /// How many requests each hardware queue has, which may be less than was asked for.
    pub fn depth(&self) -> u32 {
        // SAFETY: By the invariants of `Set`; the field does not change any more.
        unsafe { (*self.set.inner.get()).queue_depth }
    }

    /// Changes the number of hardware queues of all disks on the tag set, while they are in use.
    ///
    /// Waits until their requests have ended, and until callbacks that may sleep have returned. So
    /// it must not be called with a lock held that ending a request needs, or such a callback.
    ///
    /// There can be queues for reads, or polled ones, only if there were some of that kind, or of
    /// the kind behind it, when the tag set was made.
    ///
    /// Fails with `EINVAL` if the counts make no sense for this tag set, `ENOMEM` if the queues
    /// could not be made, `EDEADLK` in a callback of the block layer or elsewhere where the caller
    /// cannot wait for I/O. After a failure the old counts are in force.
    ///
    /// C makes every queue anew, also those that are to stay, which it cannot do without. For these
    /// it may use the reserves of the kernel, one queue at a time, and none needs more than a page
    /// in a row. (With more than 512 CPUs, the first change needs more.)
    pub fn set_queue_counts(&self, counts: QueueCounts) -> Result {
        // SAFETY: By the invariants of `Set`; the field does not change any more.
        let maps = unsafe { (*self.set.inner.get()).nr_maps };
        let counts = counts.validate(possible_cpus(), maps)?;
        let total = counts.total().ok_or(EINVAL)?.try_into()?;
        late_drop::can_wait()?;

        let resize = self.set.resize.lock();
        let update = self.set.shared.queue_update.begin(&resize);
        // C may use again what it took down last time, so no callback may know that any more. One
        // that must not sleep has been waited for. Later ones may know, though their requests have
        // ended, what C takes down now; that is on the lists of CPU notifiers to the end of this
        // change, so C does not use it again before (`blk_mq_hctx_is_reusable`).
        if T::Context::MAY_SLEEP {
            self.wait_for_callbacks();
        }
        self.set.shared.maps.request(counts);
        // If C finds no memory twice for a queue that was there, it follows a null pointer. That
        // takes a kernel that has not a page left in its reserves, or two injected faults in a row;
        // with patches/upstream/blk-mq-queue-memory.patch, C keeps it.
        self.set.shared.reserves.with_access(|| {
            // SAFETY: By the invariants of `Set`.
            unsafe { bindings::blk_mq_update_nr_hw_queues(self.set.inner.get(), total) }
        });
        drop(update);
        // A driver that wanted to start them meanwhile may have been unable to.
        //
        // SAFETY: By the invariants of `Set`.
        unsafe { bindings::blk_start_all_queues(self.set.inner.get()) };
        let retired = self.take_retired();
        let mapped = self.set.shared.maps.mapped();
        self.set.shared.maps.request(mapped);
        drop(resize);
        drop(retired);
        if mapped == counts {
            Ok(())
        } else {
            Err(ENOMEM)
        }
    }

    /// Makes what C's queue of a disk on this tag set is to point to.
    pub(crate) fn disk_data(
        &self,
        data: impl PinInit<T::QueueData, Error>,
    ) -> impl PinInit<DiskData<T>, Error> {
        DiskData::new(
            Vtable::<T>::queue_timer_expired,
            self.set.shared.queue_update.clone(),
            data,
        )
    }

    /// Runs `f`, which makes or exits hardware queues, while their number does not change.
    pub(crate) fn with_fixed_queues<R>(
        &self,
        f: impl FnOnce(*mut bindings::blk_mq_tag_set) -> R,
    ) -> R {
        let resize = self.set.resize.lock();
        let result = f(self.set.inner.get());
        let retired = self.take_retired();
        drop(resize);
        drop(retired);
        result
    }

    /// Waits for the callbacks that run, then drops the data of hardware queues that are gone.
    pub(crate) fn reap(&self) {
        // What a change of the number of queues retires may still be needed by that change.
        let resize = self.set.resize.lock();
        let retired = self.take_retired();
        drop(resize);
        drop(retired);
    }

    /// What [`Self::reap`] drops, no callback needing it any more.
    ///
    /// `resize` is held. To drop it is code of the driver, which `resize` is not held for.
    fn take_retired(&self) -> HwDataList<T> {
        let retired = self.set.shared.retired.take();
        if !retired.is_empty() {
            self.wait_for_callbacks();
        }
        retired
    }

    /// Waits until the callbacks have returned that run now and lend what they were called with.
    fn wait_for_callbacks(&self) {
        // SAFETY: By the invariants of `Set`.
        unsafe { bindings::blk_mq_wait_quiesce_done(self.set.inner.get()) };
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for Set<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant. Every disk on it holds a reference, so there is none.
        unsafe { bindings::blk_mq_free_tag_set(self.inner.get()) };
    }
}

/// How to make a [`TagSet`](super::TagSet).
///
/// # Examples
///
/// ```
/// use kernel::{block::mq::{QueueCounts, TagSetOptions}, time::Delta};
///
/// let options = TagSetOptions {
///     queues: QueueCounts { default: 4, ..QueueCounts::default() },
///     timeout: Some(Delta::from_secs(5)),
///     ..TagSetOptions::default()
/// };
/// assert_eq!(options.depth, 64);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TagSetOptions {
    /// How many hardware queues each disk has.
    pub queues: QueueCounts,
    /// How many requests each hardware queue has: not zero, and 10240 at most, to which more is
    /// reduced.
    pub depth: u32,
    /// The memory node to allocate from, which must be on line, or any.
    pub node: Option<u32>,
    /// How long a request may take before [`Operations::timeout`] is asked, in steps of a
    /// millisecond, or the block layer's choice of 30 seconds.
    pub timeout: Option<Delta>,
    /// No I/O scheduler unless the user asks for one.
    pub no_sched: bool,
    /// All hardware queues share `depth` requests.
    pub shared_bitmap: bool,
}

impl Default for TagSetOptions {
    fn default() -> Self {
        Self {
            queues: QueueCounts::default(),
            depth: 64,
            node: None,
            timeout: None,
            no_sched: false,
            shared_bitmap: false,
        }
    }
}

impl TagSetOptions {
    /// The tag set to hand to C, with the counts validated already.
    pub(super) fn as_raw<T: Operations>(
        &self,
        counts: QueueCounts,
        shared: *const TagSetInner<T>,
    ) -> Result<bindings::blk_mq_tag_set> {
        Ok(bindings::blk_mq_tag_set {
            ops: Vtable::<T>::get(),
            nr_maps: counts.maps(),
            nr_hw_queues: counts.total().ok_or(EINVAL)?,
            queue_depth: self.depth,
            cmd_size: cmd_size::<T>(),
            numa_node: self.node()?,
            timeout: self.jiffies(),
            flags: self.flags::<T>(),
            driver_data: shared.cast_mut().cast(),
            ..pin_init::zeroed()
        })
    }

    fn node(&self) -> Result<c_int> {
        match self.node {
            None => Ok(bindings::NUMA_NO_NODE),
            // SAFETY: The helper takes any number.
            Some(node) if unsafe { bindings::blk_node_online(node) } => {
                Ok(node.try_into().map_err(|_| EINVAL)?)
            }
            Some(_) => Err(EINVAL),
        }
    }

    /// The timeout in jiffies, at least one; zero for the block layer's choice.
    fn jiffies(&self) -> c_uint {
        const MAX_TIMEOUT: Jiffies = i32::MAX as Jiffies;
        self.timeout.map_or(0, |timeout| {
            let milliseconds = timeout.as_millis().clamp(1, i64::from(i32::MAX)) as u32;
            msecs_to_jiffies(milliseconds).clamp(1, MAX_TIMEOUT) as c_uint
        })
    }

    fn flags<T: Operations>(&self) -> c_uint {
        let bit = |set: bool, flag: c_uint| if set { flag } else { 0 };
        bit(T::Context::MAY_SLEEP, bindings::BLK_MQ_F_BLOCKING)
            | bit(self.no_sched, bindings::BLK_MQ_F_NO_SCHED_BY_DEFAULT)
            | bit(self.shared_bitmap, bindings::BLK_MQ_F_TAG_HCTX_SHARED)
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
