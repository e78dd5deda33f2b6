// SPDX-License-Identifier: GPL-2.0

//! What the callbacks of one scene share: requests, handles that are to be dropped, stores.

use super::{
    chance::Chance,
    kind::Kind,
    leak::Leak,
    place::Place, //
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
    page_store::{
        PageStore,
        WriteCache, //
    },
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

/// A handle of any kind, of which nothing is known but that it can be dropped.
pub(crate) type Handle = KBox<dyn Send>;

/// How many handles can wait for being dropped.
const ROOM: usize = 8;

/// What is under a lock that each context takes.
struct Held<T: Kind> {
    /// Requests of any disks, which a timer, a task or another callback ends.
    stash: PendingList<T>,
    /// Others, which mostly stay until they time out.
    hoard: PendingList<T>,
    /// Some of the first, which end where handles are dropped, or a little later in a timer.
    doomed: RequestList<T>,
    condemned: [Option<Handle>; ROOM],
    line: Option<T::Line>,
    tags: Option<Arc<TagSet<T>>>,
    /// A disk that is added where that cannot be.
    spare: Option<NewDisk<T>>,
}

/// What the callbacks of one scene share.
#[pin_data]
pub(crate) struct World<T: Kind> {
    chance: Chance,
    /// Where handles are dropped.
    place: Place,
    /// The kinds of deeds that the user leaves out.
    without: u32,
    /// Whether requests time out soon.
    pub(crate) times_out: bool,
    occasions: Atomic<u64>,
    alive: Atomic<i64>,
    /// How many hardware queues can be made before one fails; negative if none does.
    spare_queues: Atomic<i64>,
    /// Whether memory may be short for what a task does.
    scarce: Atomic<bool>,
    /// What is leaked next, as the number of a [`Leak`].
    leak: Atomic<u32>,
    pub(crate) store: Arc<PageStore>,
    #[pin]
    pub(crate) cache: WriteCache,
    pub(crate) bad: BadBlocks,
    pub(crate) fault: Fault,
    #[pin]
    held: SpinLockIrq<Held<T>>,
    /// Held for what is done with interrupts off.
    #[pin]
    pub(crate) outer_irq: SpinLockIrq<()>,
    /// Held for what a task does under a spinlock.
    #[pin]
    pub(crate) outer: SpinLock<()>,
}

impl<T: Kind> World<T> {
    /// Makes the world of a scene.
    pub(crate) fn new(
        chance: Chance,
        place: Place,
        without: u32,
        times_out: bool,
    ) -> Result<Arc<Self>> {
        const BLOCK: u32 = WriteCache::SMALLEST_BLOCK;

        let store = Arc::pin_init(PageStore::new(BLOCK), GFP_KERNEL)?;
        let behind = store.clone();
        Arc::pin_init(
            try_pin_init!(Self {
                chance,
                place,
                without,
                times_out,
                occasions: Atomic::new(0),
                alive: Atomic::new(0),
                spare_queues: Atomic::new(-1),
                scarce: Atomic::new(false),
                leak: Atomic::new(Leak::Nothing as u32),
                store,
                cache <- WriteCache::new(behind, 0, BLOCK),
                bad: BadBlocks::new()?,
                fault: Fault::new(c"adversary", &FaultSettings::default())?,
                held <- new_spinlock_irq!(Held {
                    stash: PendingList::new(),
                    hoard: PendingList::new(),
                    doomed: RequestList::new(),
                    condemned: [const { None }; ROOM],
                    line: None,
                    tags: None,
                    spare: None,
                }),
                outer_irq <- new_spinlock_irq!(()),
                outer <- new_spinlock!(()),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The choices for one thing that happens at `place`, or for a branch of them.
    pub(crate) fn occasion(&self, place: Place) -> Chance {
        place.reached();
        let occasion = self.occasions.fetch_add(1, Relaxed);
        self.chance.fork(occasion << 8 | place as u64)
    }

    /// Whether deeds of a kind are done.
    pub(crate) fn does(&self, kind: u32) -> bool {
        self.without & kind == 0
    }

    /// Counts something that is not gone yet.
    pub(crate) fn born(&self) {
        self.alive.fetch_add(1, Relaxed);
    }

    /// Counts something that goes.
    pub(crate) fn gone(&self) {
        self.alive.fetch_sub(1, Relaxed);
    }

    /// How much is not gone yet.
    pub(crate) fn alive(&self) -> i64 {
        self.alive.load(Relaxed)
    }

    /// Lets a hardware queue fail after so many others, or none if that is negative.
    pub(crate) fn fail_queue(&self, after: i64) {
        self.spare_queues.store(after, Relaxed);
    }

    /// Whether the hardware queue that is being made fails.
    pub(crate) fn queue_fails(&self) -> bool {
        self.spare_queues.load(Relaxed) >= 0 && self.spare_queues.fetch_sub(1, Relaxed) == 0
    }

    /// Says whether memory may be short.
    pub(crate) fn set_scarce(&self, scarce: bool) {
        self.scarce.store(scarce, Relaxed);
    }

    /// Whether memory may be short.
    pub(crate) fn is_scarce(&self) -> bool {
        self.scarce.load(Relaxed)
    }

    /// Has something leaked next.
    pub(crate) fn leak_next(&self, leak: Leak) {
        self.leak.store(leak as u32, Relaxed);
    }

    /// Whether something is still to be leaked.
    pub(crate) fn leaks_something(&self) -> bool {
        self.leak.load(Relaxed) != Leak::Nothing as u32
    }

    /// Whether this is to be leaked; true once.
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

    /// Keeps a request for so long that it times out, if that is soon.
    pub(crate) fn hoard(&self, rq: StartedRequest<T>) {
        self.held.lock().hoard.push_back(rq);
    }

    /// Takes all requests that are kept for so long.
    pub(crate) fn take_hoard(&self) -> RequestList<T> {
        self.held.lock().hoard.take()
    }

    /// Takes all requests that are kept.
    pub(crate) fn take_stash(&self) -> RequestList<T> {
        self.held.lock().stash.take()
    }

    /// Has the requests that are kept end where handles are dropped.
    ///
    /// They are no handle that can wait for long: a disk may be dropped first, which waits for
    /// them.
    pub(crate) fn doom_stash(&self) {
        let mut held = self.held.lock();
        let mut taken = held.stash.take();
        held.doomed.append(&mut taken);
    }

    /// Takes the requests that are to end at `place`.
    pub(crate) fn doomed_at(&self, place: Place) -> RequestList<T> {
        if place == self.place {
            self.any_doomed()
        } else {
            RequestList::new()
        }
    }

    /// Takes the requests that are to end.
    pub(crate) fn any_doomed(&self) -> RequestList<T> {
        core::mem::take(&mut self.held.lock().doomed)
    }

    /// Takes a request that timed out, if it is one of those that are kept.
    pub(crate) fn rescue<'t>(
        &self,
        rq: TimedOutRequest<'t, T>,
    ) -> Result<(OverdueRequest<T>, TimeoutAction<'t>), TimedOutRequest<'t, T>> {
        let mut held = self.held.lock();
        held.stash.remove(rq).or_else(|rq| held.hoard.remove(rq))
    }

    /// Has a handle dropped where the scene drops them; gives it back if there is no room.
    pub(crate) fn condemn(&self, handle: Handle) -> Option<Handle> {
        let mut held = self.held.lock();
        match held.condemned.iter_mut().find(|room| room.is_none()) {
            Some(room) => {
                *room = Some(handle);
                None
            }
            None => Some(handle),
        }
    }

    /// Takes a handle that is to be dropped at `place`.
    pub(crate) fn condemned_at(&self, place: Place) -> Option<Handle> {
        if place == self.place {
            self.any_condemned().inspect(|_| place.dropped())
        } else {
            None
        }
    }

    /// Takes a handle that is to be dropped.
    pub(crate) fn any_condemned(&self) -> Option<Handle> {
        let mut held = self.held.lock();
        held.condemned.iter_mut().find_map(Option::take)
    }

    /// The line in which requests of all queues wait.
    pub(crate) fn line(&self) -> Option<T::Line> {
        self.held.lock().line.clone()
    }

    /// Takes that line, and sets another.
    pub(crate) fn replace_line(&self, line: Option<T::Line>) -> Option<T::Line> {
        core::mem::replace(&mut self.held.lock().line, line)
    }

    /// The tag set of the disks.
    pub(crate) fn tags(&self) -> Option<Arc<TagSet<T>>> {
        self.held.lock().tags.clone()
    }

    /// Takes the disk that is to be added, and sets another.
    pub(crate) fn replace_spare(&self, spare: Option<NewDisk<T>>) -> Option<NewDisk<T>> {
        core::mem::replace(&mut self.held.lock().spare, spare)
    }

    /// Takes that tag set, and sets another.
    pub(crate) fn replace_tags(&self, tags: Option<Arc<TagSet<T>>>) -> Option<Arc<TagSet<T>>> {
        core::mem::replace(&mut self.held.lock().tags, tags)
    }
}
