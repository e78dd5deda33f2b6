// SPDX-License-Identifier: GPL-2.0

//! The state that the callbacks of a scenario share.

use super::{
    call_site::CallSite, //
    leak::Leak,
    memory::Memory,
    rng::Rng,
    variant::Variant,
};
use kernel::{
    block::{
        badblocks::BadBlocks,
        gendisk::NewDisk,
        mq::{
            OverdueRequest,
            PendingList,
            RequestList,
            StartedRequest,
            TagSet,
            TimedOutRequest,
            TimeoutAction, //
        },
    },
    fault::{
        Fault,
        FaultSettings, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        new_spinlock_irq,
        Arc,
        SpinLock,
        SpinLockIrq, //
    },
};

/// A handle of any type, which can only be dropped.
pub(crate) type Handle = KBox<dyn Send>;

/// The maximum number of handles that wait to be dropped.
const ROOM: usize = 8;

/// The state under a lock that is taken in every context.
struct Held<T: Variant> {
    /// Requests of any disk, which a timer, a task or another callback ends.
    stash: PendingList<T>,
    /// Requests, most of which stay until they time out.
    until_timeout: PendingList<T>,
    /// Requests that end at the call site of the scenario, or later in a timer.
    to_end: RequestList<T>,
    to_drop: [Option<Handle>; ROOM],
    delay_queue: Option<T::Delay>,
    tags: Option<Arc<TagSet<T>>>,
    /// A disk to be added where adding fails.
    spare_disk: Option<NewDisk<T>>,
}

/// The state that the callbacks of a scenario share.
#[pin_data]
pub(crate) struct Shared<T: Variant> {
    rng: Rng,
    /// The call site at which handles are dropped.
    site: CallSite,
    /// The kinds of misuse that are disabled.
    disabled: u32,
    /// Whether the timeout of requests is short.
    pub(crate) times_out: bool,
    calls: Atomic<u64>,
    live: Atomic<i64>,
    /// The number of hardware queues until one fails. Negative if none fails.
    queues_until_failure: Atomic<i64>,
    /// Whether allocations may fail in what a task does.
    alloc_may_fail: Atomic<bool>,
    /// The object to leak next, as the number of a [`Leak`].
    leak: Atomic<u32>,
    #[pin]
    pub(crate) memory: Memory,
    pub(crate) bad: BadBlocks,
    pub(crate) fault: Fault,
    #[pin]
    held: SpinLockIrq<Held<T>>,
    /// Is held for misuse with interrupts disabled.
    #[pin]
    pub(crate) outer_irq: SpinLockIrq<()>,
    /// Is held for misuse by a task under a spinlock.
    #[pin]
    pub(crate) outer: SpinLock<()>,
}

impl<T: Variant> Shared<T> {
    /// Creates the state of a scenario.
    pub(crate) fn new(
        rng: Rng,
        site: CallSite,
        disabled: u32,
        times_out: bool,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            try_pin_init!(Self {
                rng,
                site,
                disabled,
                times_out,
                calls: Atomic::new(0),
                live: Atomic::new(0),
                queues_until_failure: Atomic::new(-1),
                alloc_may_fail: Atomic::new(false),
                leak: Atomic::new(Leak::Nothing as u32),
                memory <- Memory::new(),
                bad: BadBlocks::new()?,
                fault: Fault::new(c"adversary", &FaultSettings::default())?,
                held <- new_spinlock_irq!(Held {
                    stash: PendingList::new(),
                    until_timeout: PendingList::new(),
                    to_end: RequestList::new(),
                    to_drop: [const { None }; ROOM],
                    delay_queue: None,
                    tags: None,
                    spare_disk: None,
                }),
                outer_irq <- new_spinlock_irq!(()),
                outer <- new_spinlock!(()),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Returns the random numbers for one call at `site`.
    pub(crate) fn rng_at(&self, site: CallSite) -> Rng {
        site.reached();
        let occasion = self.calls.fetch_add(1, Relaxed);
        self.rng.fork(occasion << 8 | site as u64)
    }

    /// Whether a kind of misuse is enabled.
    pub(crate) fn is_enabled(&self, kind: u32) -> bool {
        self.disabled & kind == 0
    }

    /// Counts an object that was created.
    pub(crate) fn count_created(&self) {
        self.live.fetch_add(1, Relaxed);
    }

    /// Counts an object that was dropped.
    pub(crate) fn count_dropped(&self) {
        self.live.fetch_sub(1, Relaxed);
    }

    /// Returns the number of objects that were not dropped yet.
    pub(crate) fn live(&self) -> i64 {
        self.live.load(Relaxed)
    }

    /// Makes the hardware queue fail that comes after `after` others. A negative number disables
    /// it.
    pub(crate) fn fail_queue(&self, after: i64) {
        self.queues_until_failure.store(after, Relaxed);
    }

    /// Whether the hardware queue that is being set up fails.
    pub(crate) fn queue_fails(&self) -> bool {
        self.queues_until_failure.load(Relaxed) >= 0
            && self.queues_until_failure.fetch_sub(1, Relaxed) == 0
    }

    /// Says whether allocations may fail.
    pub(crate) fn set_alloc_may_fail(&self, alloc_may_fail: bool) {
        self.alloc_may_fail.store(alloc_may_fail, Relaxed);
    }

    /// Whether allocations may fail.
    pub(crate) fn alloc_may_fail(&self) -> bool {
        self.alloc_may_fail.load(Relaxed)
    }

    /// Selects the object to leak next.
    pub(crate) fn leak_next(&self, leak: Leak) {
        self.leak.store(leak as u32, Relaxed);
    }

    /// Whether an object is still to be leaked.
    pub(crate) fn leaks_something(&self) -> bool {
        self.leak.load(Relaxed) != Leak::Nothing as u32
    }

    /// Whether this object is to be leaked. True once.
    pub(crate) fn leaks(&self, leak: Leak) -> bool {
        self.leaks_something()
            && self
                .leak
                .cmpxchg(leak as u32, Leak::Nothing as u32, Relaxed)
                .is_ok()
    }

    /// Keeps a request.
    pub(crate) fn stash(&self, rq: StartedRequest<T>) {
        self.held.lock().stash.push_back(rq);
    }

    /// Keeps a request until it times out, if the timeout is short.
    pub(crate) fn until_timeout(&self, rq: StartedRequest<T>) {
        self.held.lock().until_timeout.push_back(rq);
    }

    /// Takes all requests that are kept until they time out.
    pub(crate) fn take_until_timeout(&self) -> RequestList<T> {
        self.held.lock().until_timeout.take()
    }

    /// Takes all requests that are kept.
    pub(crate) fn take_stash(&self) -> RequestList<T> {
        self.held.lock().stash.take()
    }

    /// Moves the kept requests to those that end at the call site of the scenario.
    ///
    /// A request cannot wait there for long: the drop of its disk may come first, and waits for it.
    pub(crate) fn end_stash_at_site(&self) {
        let mut held = self.held.lock();
        let mut taken = held.stash.take();
        held.to_end.append(&mut taken);
    }

    /// Takes the requests that are to end, if `site` is the call site of the scenario.
    pub(crate) fn take_to_end_at(&self, site: CallSite) -> RequestList<T> {
        if site == self.site {
            self.take_to_end()
        } else {
            RequestList::new()
        }
    }

    /// Takes the requests that are to end.
    pub(crate) fn take_to_end(&self) -> RequestList<T> {
        core::mem::take(&mut self.held.lock().to_end)
    }

    /// Takes a request that timed out, if it is a kept one.
    pub(crate) fn take_overdue<'t>(
        &self,
        rq: TimedOutRequest<'t, T>,
    ) -> Result<(OverdueRequest<T>, TimeoutAction<'t>), TimedOutRequest<'t, T>> {
        let mut held = self.held.lock();
        held.stash
            .remove(rq)
            .or_else(|rq| held.until_timeout.remove(rq))
    }

    /// Has a handle dropped at the call site of the scenario. Returns it if there is no room.
    pub(crate) fn drop_at_site(&self, handle: Handle) -> Option<Handle> {
        let mut held = self.held.lock();
        match held.to_drop.iter_mut().find(|room| room.is_none()) {
            Some(room) => {
                *room = Some(handle);
                None
            }
            None => Some(handle),
        }
    }

    /// Takes a handle that is to be dropped, if `site` is the call site of the scenario.
    pub(crate) fn take_to_drop_at(&self, site: CallSite) -> Option<Handle> {
        if site == self.site {
            self.take_to_drop().inspect(|_| site.dropped())
        } else {
            None
        }
    }

    /// Takes a handle that is to be dropped.
    pub(crate) fn take_to_drop(&self) -> Option<Handle> {
        let mut held = self.held.lock();
        held.to_drop.iter_mut().find_map(Option::take)
    }

    /// Returns the delay queue that all hardware queues share.
    pub(crate) fn delay_queue(&self) -> Option<T::Delay> {
        self.held.lock().delay_queue.clone()
    }

    /// Replaces the delay queue. Returns the previous one.
    pub(crate) fn replace_delay_queue(&self, delay_queue: Option<T::Delay>) -> Option<T::Delay> {
        core::mem::replace(&mut self.held.lock().delay_queue, delay_queue)
    }

    /// Returns the tag set of the disks.
    pub(crate) fn tags(&self) -> Option<Arc<TagSet<T>>> {
        self.held.lock().tags.clone()
    }

    /// Replaces the disk that is to be added. Returns the previous one.
    pub(crate) fn replace_spare_disk(&self, spare_disk: Option<NewDisk<T>>) -> Option<NewDisk<T>> {
        core::mem::replace(&mut self.held.lock().spare_disk, spare_disk)
    }

    /// Replaces the tag set. Returns the previous one.
    pub(crate) fn replace_tags(&self, tags: Option<Arc<TagSet<T>>>) -> Option<Arc<TagSet<T>>> {
        core::mem::replace(&mut self.held.lock().tags, tags)
    }
}
