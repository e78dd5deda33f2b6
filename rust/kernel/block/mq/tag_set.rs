// SPDX-License-Identifier: GPL-2.0

//! The tag set of one or more disks.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    cpu_map::{
        possible_cpus,
        CpuMaps, //
    },
    disk_data::DiskData,
    hw_queue::HwDataList,
    pdu::cmd_size,
    quiesce_depth::DepthChange,
    tag_set_inner::TagSetInner,
    vtable::Vtable, //
    Context,
    Operations,
    QueueCounts,
};
use crate::{
    bindings,
    dma::bound::DmaDevice,
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
use core::ptr;

/// The name of the lock class of all tag sets. Lockdep requires that it has a single address, and a
/// name in generic code would have one in each module that uses it.
static RESIZE_NAME: &CStr = c"block_mq_resize";

/// The tags and requests of a disk, or of several disks that share them: C's `struct
/// blk_mq_tag_set`.
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
/// The last reference may be dropped in any context. Where the caller cannot wait, a worker frees
/// the requests later.
pub struct TagSet<T: Operations> {
    set: LateDrop<Set<T>>,
}

/// The inner part of a tag set. Dropping it may sleep.
///
/// # Invariants
///
/// `inner` is allocated with the vtable of `T`, and its `driver_data` points to `shared`.
#[pin_data(PinnedDrop)]
struct Set<T: Operations> {
    #[pin]
    shared: TagSetInner<T>,
    /// Held while hardware queues are initialised or exited outside C's locks, until callbacks no
    /// longer need the data that was retired during that time.
    #[pin]
    resize: Mutex<()>,
    #[pin]
    inner: Opaque<bindings::blk_mq_tag_set>,
}

// SAFETY: C synchronises its tag set, and the driver's data is `Send` and `Sync`.
unsafe impl<T: Operations> Send for Set<T> {}

// SAFETY: As above.
unsafe impl<T: Operations> Sync for Set<T> {}

impl<T: Operations> TagSet<T> {
    /// The number of maps that the driver can use. The last is that of polled queues.
    const MAX_MAPS: u32 = if T::HAS_POLL {
        QueueCounts::MAX_MAPS
    } else {
        QueueCounts::MAX_MAPS - 1
    };

    /// Creates a tag set.
    ///
    /// Returns `EINVAL` if an option is invalid or requests polled queues for a driver that does
    /// not poll, `ENOMEM` if out of memory, `EAGAIN` while the parameters of the module are being
    /// parsed, `ENOTSUPP` in a module for a kernel without sysfs or Tasks RCU, or an error of the
    /// initialisers.
    pub fn new(
        options: TagSetOptions,
        data: impl PinInit<T::TagSetData, Error>,
    ) -> Result<Arc<Self>> {
        Self::with_maps(options, 1, CpuMaps::default(), data)
    }

    /// Creates a tag set whose queues serve the CPUs that the tables say. The tables can be changed
    /// by [`Self::set_cpu_maps`].
    ///
    /// As [`Self::new`]. Also returns `EINVAL` if a table is not for the number of queues that the
    /// options request, after that was reduced to the number of possible CPUs.
    pub fn with_cpu_maps(
        options: TagSetOptions,
        tables: CpuMaps,
        data: impl PinInit<T::TagSetData, Error>,
    ) -> Result<Arc<Self>> {
        // C builds a single map again only if the number of queues changes.
        Self::with_maps(options, 2, tables, data)
    }

    /// Creates a tag set that has at least `min_maps` maps, also if there are no queues for these.
    fn with_maps(
        options: TagSetOptions,
        min_maps: u32,
        tables: CpuMaps,
        data: impl PinInit<T::TagSetData, Error>,
    ) -> Result<Arc<Self>> {
        let counts = options.queues.validate(possible_cpus(), Self::MAX_MAPS)?;
        tables.check(counts.default, counts.read)?;
        let pin = ModulePin::new(this_module::<T::OwnerModule>())?;
        let set = LateDrop::new(
            pin,
            try_pin_init!(&this in Set {
                shared <- TagSetInner::new(counts, tables, data),
                resize <- Mutex::new((), RESIZE_NAME, static_lock_class!()),
                // INVARIANT: `shared` is initialised, and `this` does not move.
                inner <- Opaque::try_ffi_init(move |slot: *mut bindings::blk_mq_tag_set| {
                    // SAFETY: `this` is valid for the field projection.
                    let shared = unsafe { &raw const (*this.as_ptr()).shared };
                    // SAFETY: `slot` is valid for writes.
                    unsafe { slot.write(options.as_raw(counts, min_maps, shared)?) };
                    // SAFETY: `slot` contains the fields that drivers set, and zeros, and does not
                    // move. Callbacks that run during the call find `shared`, which is initialised.
                    // After a failure, C has exited the requests that it had initialised, and does
                    // not access `slot` again.
                    to_result(unsafe { bindings::blk_alloc_tag_set(slot) })
                }),
            }? Error),
            GFP_KERNEL,
        )?;
        Ok(Arc::new(Self { set }, GFP_KERNEL)?)
    }

    /// Returns the driver data of the tag set.
    pub fn data(&self) -> &T::TagSetData {
        &self.set.shared.data
    }

    /// Returns the present number of hardware queues of each disk.
    pub fn queue_counts(&self) -> QueueCounts {
        self.set.shared.maps.mapped()
    }

    /// Returns the number of requests of each hardware queue, which may be less than requested.
    pub fn depth(&self) -> u32 {
        // SAFETY: By the invariants of `Set`. The field does not change after the allocation.
        unsafe { (*self.set.inner.get()).queue_depth }
    }

    /// Returns whether [`TagSetOptions::reserved_tags`] is not 0.
    pub(super) fn has_reserved_tags(&self) -> bool {
        // SAFETY: By the invariants of `Set`. The field does not change after the allocation.
        unsafe { (*self.set.inner.get()).reserved_tags > 0 }
    }

    /// Returns `EBUSY` if there are reserved tags and a queue, which would have to share them.
    /// Called in [`Self::with_fixed_queues`], since queues are only added there.
    ///
    /// A queue that shares tags may have no more than a fair share of them. To C, requests with
    /// reserved tags count as well, but freeing one does not wake the waiters for ordinary tags.
    pub(crate) fn check_reserved_tags(&self) -> Result {
        if !self.has_reserved_tags() {
            return Ok(());
        }
        // SAFETY: By the invariants of `Set`.
        let queues = unsafe { &raw const (*self.set.inner.get()).tag_list };
        // SAFETY: As above.
        let first = unsafe { &raw const (*queues).next };
        // SAFETY: By the invariants of `Set`, the field is valid. C may remove a disk concurrently,
        // by a single store to the field, so this reads the value before or after.
        let first = unsafe { first.read_volatile() };
        if ptr::eq(first, queues) {
            Ok(())
        } else {
            Err(EBUSY)
        }
    }

    /// Changes the number of hardware queues of all disks that use the tag set. The disks may be in
    /// use.
    ///
    /// Waits until their requests have ended, and until callbacks that may sleep have returned. The
    /// caller must not hold a lock that is needed to end a request, or by such a callback.
    ///
    /// Read queues are possible only if the tag set was created with read or poll queues, or by
    /// [`Self::with_cpu_maps`]. Poll queues are possible only if it was created with poll queues.
    ///
    /// The block layer spreads the CPUs over the queues, even if there were tables for them.
    ///
    /// Returns `EINVAL` if the counts are invalid for this tag set, `ENOMEM` if the queues could
    /// not be allocated, and `EDEADLK` while the tag set is [quiesced](Self::quiesce), in a
    /// callback of the block layer, or elsewhere where the caller cannot wait for I/O. After an
    /// error, the old counts are in effect. If the tag set is quiesced during the change, this
    /// waits until it is no longer.
    ///
    /// C exits and initialises every queue again, including those that stay, for which it cannot
    /// handle a failure. For these it may use the kernel's memory reserves, one queue at a time,
    /// and no allocation is larger than a page. (With more than 512 CPUs, the first change needs a
    /// larger one.)
    pub fn set_queue_counts(&self, counts: QueueCounts) -> Result {
        self.set_cpu_maps(counts, CpuMaps::default())
    }

    /// Changes the number of hardware queues of all disks, and which CPUs they serve.
    ///
    /// As [`Self::set_queue_counts`]. Also returns `EINVAL` if a table is not for the number of
    /// queues that is requested, after that was reduced to the number of possible CPUs; or if there
    /// are tables, but the tag set was created by [`Self::new`] without read or poll queues.
    pub fn set_cpu_maps(&self, counts: QueueCounts, tables: CpuMaps) -> Result {
        // SAFETY: By the invariants of `Set`. The field does not change after the allocation.
        let maps = unsafe { (*self.set.inner.get()).nr_maps };
        let counts = counts.validate(possible_cpus(), maps)?;
        let total = counts.total().ok_or(EINVAL)?.try_into()?;
        tables.check(counts.default, counts.read)?;
        if maps < 2 && !tables.is_empty() {
            return Err(EINVAL);
        }
        late_drop::check_may_wait()?;
        // The requests that wait would not end.
        if self.set.shared.quiesce_depth.is_quiesced() {
            return Err(EDEADLK);
        }

        let resize = self.set.resize.lock();
        let update = self.set.shared.queue_update.begin(&resize);
        // C may reuse hardware queues that it exited in an earlier change, so no callback may still
        // use them. `begin` has waited for callbacks that must not sleep. Callbacks that start
        // later may use the queues that C exits now, even after their requests have ended. C does
        // not reuse those before the end of this change, because they are on the lists of CPU
        // notifiers until then (`blk_mq_hctx_is_reusable`).
        if T::Context::MAY_SLEEP {
            self.wait_for_callbacks();
        }
        self.set.shared.maps.request(counts, tables);
        // If C fails twice to allocate a queue that existed before, it dereferences a NULL pointer.
        // This happens only if the reserves have not a single page left, or after two injected
        // faults in a row. With "blk-mq: do not lose a hardware queue for want of memory", C keeps
        // the queue instead.
        self.set.shared.reserves.with_access(|| {
            // SAFETY: By the invariants of `Set`.
            unsafe { bindings::blk_mq_update_nr_hw_queues(self.set.inner.get(), total) }
        });
        drop(update);
        // A driver may have tried to start the hardware queues during the change, which had no
        // effect.
        //
        // SAFETY: By the invariants of `Set`.
        unsafe { bindings::blk_start_all_queues(self.set.inner.get()) };
        let retired = self.take_retired();
        let is_done = self.set.shared.maps.commit();
        drop(resize);
        drop(retired);
        if is_done {
            Ok(())
        } else {
            Err(ENOMEM)
        }
    }

    /// Returns an initialiser for the data of a request queue on this tag set. The memory of its
    /// requests can be mapped for `dma_device`.
    pub(crate) fn disk_data(
        &self,
        dma_device: Option<Arc<DmaDevice>>,
        data: impl PinInit<T::QueueData, Error>,
    ) -> impl PinInit<DiskData<T>, Error> {
        DiskData::new(
            Vtable::<T>::queue_timer_expired,
            self.set.shared.queue_update.clone(),
            dma_device,
            data,
        )
    }

    /// Changes how often the tag set is quiesced by `change`. May be called in any context.
    ///
    /// Returns false if that is too often. Then nothing changes.
    pub(super) fn change_quiesce_depth(&self, change: DepthChange) -> bool {
        let is_changed = self.set.shared.quiesce_depth.change(change);
        self.apply_quiesce_depth();
        is_changed
    }

    /// Makes each disk quiesced if the tag set is, and starts the dispatch of the others.
    fn apply_quiesce_depth(&self) {
        let shared = &self.set.shared;
        // SAFETY: By the invariants of `Set`, and the queues of `inner` were allocated with a
        // `DiskData<T>`.
        unsafe {
            shared
                .quiesce_depth
                .apply::<T>(self.set.inner.get(), &shared.queue_update)
        };
    }

    /// Calls `f`, which initialises or exits hardware queues, while their number cannot change.
    pub(crate) fn with_fixed_queues<R>(
        &self,
        f: impl FnOnce(*mut bindings::blk_mq_tag_set) -> R,
    ) -> R {
        let resize = self.set.resize.lock();
        let result = f(self.set.inner.get());
        let retired = self.take_retired();
        drop(resize);
        drop(retired);
        // A disk that is new is quiesced if the others are.
        self.apply_quiesce_depth();
        result
    }

    /// Waits for the running callbacks, then drops the data of removed hardware queues.
    pub(crate) fn reap(&self) {
        // A change of the number of queues may still need the data that it retires.
        let resize = self.set.resize.lock();
        let retired = self.take_retired();
        drop(resize);
        drop(retired);
    }

    /// Returns the data of removed hardware queues, which no callback uses any more.
    ///
    /// The caller holds `resize`, and releases it before it drops the result, because dropping runs
    /// code of the driver.
    fn take_retired(&self) -> HwDataList<T> {
        let retired = self.set.shared.retired.take();
        if !retired.is_empty() {
            self.wait_for_callbacks();
        }
        retired
    }

    /// Waits until all callbacks that are running now, and may use data of a removed disk or
    /// hardware queue, have returned.
    pub(super) fn wait_for_callbacks(&self) {
        // SAFETY: By the invariants of `Set`.
        unsafe { bindings::blk_mq_wait_quiesce_done(self.set.inner.get()) };
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for Set<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant. Every disk or queue holds a reference to its tag set, so
        // none uses this one.
        unsafe { bindings::blk_mq_free_tag_set(self.inner.get()) };
    }
}

/// Options for [`TagSet::new`].
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
    /// The number of hardware queues of each disk.
    pub queues: QueueCounts,
    /// The number of requests of each hardware queue. It must not be zero, and is limited to 10240.
    pub depth: u32,
    /// How many requests of each hardware queue only [`PassthroughQueue::reserved_request`] and
    /// [`PassthroughQueue::try_reserved_request`] return. They are part of `depth`, of which one
    /// must be left, and limited to [`Self::MAX_RESERVED_TAGS`]. A tag set that has such tags has
    /// only one queue or disk at a time. One that is dropped where the caller cannot wait remains
    /// for a moment.
    ///
    /// A driver reserves tags for commands that end others: for those by which it resets a device
    /// or aborts a command, if others can hold all tags until that is done. Reserved tags are the
    /// first ones, from 0 on.
    ///
    /// [`PassthroughQueue::reserved_request`]: super::PassthroughQueue::reserved_request
    /// [`PassthroughQueue::try_reserved_request`]: super::PassthroughQueue::try_reserved_request
    pub reserved_tags: u32,
    /// The NUMA node to allocate from, which must be online. [`None`] for any node.
    pub node: Option<u32>,
    /// The time after which [`Operations::timeout`] is called for a request, with a resolution of a
    /// millisecond. [`None`] for the block layer's default of 30 seconds.
    pub timeout: Option<Delta>,
    /// Whether disks have no I/O scheduler by default.
    pub no_sched: bool,
    /// Whether all hardware queues share `depth` tags.
    pub shared_bitmap: bool,
}

impl Default for TagSetOptions {
    fn default() -> Self {
        Self {
            queues: QueueCounts::default(),
            depth: 64,
            reserved_tags: 0,
            node: None,
            timeout: None,
            no_sched: false,
            shared_bitmap: false,
        }
    }
}

impl TagSetOptions {
    /// The most tags that can be reserved. C does not check that tags are left where it has fewer
    /// than `depth`: a crash kernel has 64, and an I/O scheduler 256.
    pub const MAX_RESERVED_TAGS: u32 = 63;

    /// Returns the tag set for C, with `counts` that were validated, and at least `min_maps` maps.
    pub(super) fn as_raw<T: Operations>(
        &self,
        counts: QueueCounts,
        min_maps: u32,
        shared: *const TagSetInner<T>,
    ) -> Result<bindings::blk_mq_tag_set> {
        Ok(bindings::blk_mq_tag_set {
            ops: Vtable::<T>::get(),
            nr_maps: counts.maps().max(min_maps),
            nr_hw_queues: counts.total().ok_or(EINVAL)?,
            queue_depth: self.depth,
            reserved_tags: self.reserved_tags()?,
            cmd_size: cmd_size::<T>(),
            numa_node: self.node()?,
            timeout: self.jiffies(),
            flags: self.flags::<T>(),
            driver_data: shared.cast_mut().cast(),
            ..pin_init::zeroed()
        })
    }

    fn reserved_tags(&self) -> Result<c_uint> {
        // C adds 1, which may overflow.
        if self.reserved_tags > Self::MAX_RESERVED_TAGS || self.reserved_tags >= self.depth {
            return Err(EINVAL);
        }
        Ok(self.reserved_tags)
    }

    fn node(&self) -> Result<c_int> {
        match self.node {
            None => Ok(bindings::NUMA_NO_NODE),
            // SAFETY: The helper accepts any number.
            Some(node) if unsafe { bindings::blk_node_online(node) } => {
                Ok(node.try_into().map_err(|_| EINVAL)?)
            }
            Some(_) => Err(EINVAL),
        }
    }

    /// Returns the timeout in jiffies, or zero for the block layer's default.
    fn jiffies(&self) -> c_uint {
        self.timeout.map_or(0, timeout_jiffies)
    }

    fn flags<T: Operations>(&self) -> c_uint {
        let bit = |set: bool, flag: c_uint| if set { flag } else { 0 };
        bit(T::Context::MAY_SLEEP, bindings::BLK_MQ_F_BLOCKING)
            | bit(self.no_sched, bindings::BLK_MQ_F_NO_SCHED_BY_DEFAULT)
            | bit(self.shared_bitmap, bindings::BLK_MQ_F_TAG_HCTX_SHARED)
    }
}

/// Returns the timeout in jiffies, which is at least one.
pub(super) fn timeout_jiffies(timeout: Delta) -> c_uint {
    const MAX_TIMEOUT: Jiffies = i32::MAX as Jiffies;
    let milliseconds = timeout.as_millis().clamp(1, i64::from(i32::MAX)) as u32;
    msecs_to_jiffies(milliseconds).clamp(1, MAX_TIMEOUT) as c_uint
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
