// SPDX-License-Identifier: GPL-2.0

//! A submission queue, with the completion queue in which its commands complete.

use super::{
    access::Registers,
    alarm::Alarm,
    completion_queue::{
        Command,
        CompletionQueue,
        EventSink,
        Ring, //
    },
    data_pointer::DataPointer,
    prp::{
        self,
        PAGE_SIZE, //
    },
    queue_entry::SqEntry,
    registers::Side, //
};
use kernel::{
    block::mq::{
        IoCompletionBatch,
        Request,
        RequestTable,
        Submitter,
        TimedOutRequest,
        VacantEntry, //
    },
    device::Bound,
    dma::Coherent,
    io::{
        io_project,
        io_write,
        IoBase,
        SysMem, //
    },
    irq::exclusive::Exclusive,
    pci::{
        self,
        bar::Doorbell,
        vectors::IrqVectors, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu,
        rcu_slot::RcuSlot,
        static_lock_class,
        Arc,
        Mutex,
        SpinLock,
        SpinLockGuard, //
    },
};

/// What happens to a request that comes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Gate {
    /// The controller gets it.
    Open,
    /// It is sent again later.
    Paused,
    /// It fails.
    Dead,
}

/// The submission queue, of which the driver writes the entries.
pub(crate) struct Submission<C: Command> {
    ring: Coherent<[SqEntry]>,
    doorbell: Doorbell,
    table: Submitter<C>,
    /// Two words for each tag, which the command with that tag can have as its memory. A page
    /// follows all of them.
    words: Coherent<[[u64; 2]]>,
    is_open: bool,
    /// The number of the queue.
    id: u16,
    tail: usize,
    /// The tail that the controller knows of.
    announced: usize,
}

/// Room for a command: an entry of the submission queue, and one of the table.
pub(crate) struct Room<'a, C: Command> {
    entry: VacantEntry<'a, C>,
    slot: SysMem<'a, SqEntry>,
    words: &'a Coherent<[[u64; 2]]>,
    tag: u32,
    tail: &'a mut usize,
    /// The tail when the command is in the queue.
    next: usize,
}

/// Writes an entry, word by word.
#[inline]
fn write(slot: SysMem<'_, SqEntry>, entry: SqEntry) {
    let words = entry.map(u64::to_le);
    // The indices are in range, so this does not fail.
    let _ = (|| -> Result {
        io_write!(slot, [try: 0], words[0]);
        io_write!(slot, [try: 1], words[1]);
        io_write!(slot, [try: 2], words[2]);
        io_write!(slot, [try: 3], words[3]);
        io_write!(slot, [try: 4], words[4]);
        io_write!(slot, [try: 5], words[5]);
        io_write!(slot, [try: 6], words[6]);
        io_write!(slot, [try: 7], words[7]);
        Ok(())
    })();
}

impl<C: Command> Room<'_, C> {
    /// Writes words into memory that is that of the command until it has completed, and returns a
    /// pointer to them. They can be read as part of a page, which takes no memory of others: some
    /// controllers do so.
    ///
    /// [`None`] if the tag has no such memory, as that of another queue.
    #[inline]
    pub(crate) fn write_words(&self, words: [u64; 2]) -> Option<DataPointer> {
        let all = self.words.as_view().as_sys_mem();
        (|| {
            let own = io_project!(all, [try: self.tag as usize]);
            io_write!(own, [try: 0], words[0].to_le());
            io_write!(own, [try: 1], words[1].to_le());
            Ok::<_, Error>(())
        })()
        .ok()?;
        let address = self.words.dma_address() + u64::from(self.tag) * size_of_val(&words) as u64;
        prp::without_list(address, PAGE_SIZE as u32)
    }

    /// Writes the entry that `entry` makes for an identifier, and takes over the command. The
    /// controller does not know of it before [`Submission::announce`].
    #[inline]
    pub(crate) fn put(self, command: C, entry: impl FnOnce(u16) -> SqEntry) {
        write(self.slot, entry(self.entry.id()));
        self.entry.insert(command);
        *self.tail = self.next;
    }
}

impl<C: Command> Submission<C> {
    /// Returns the room for the command of a request; [`None`] if the queue pair is not open, or if
    /// the tag is not free.
    ///
    /// There is always room in the queue, since that has one entry more than there are tags.
    #[inline]
    pub(crate) fn room(&mut self, rq: &Request<C::Driver>) -> Option<Room<'_, C>> {
        if !self.is_open {
            return None;
        }
        let tag = rq.tag();
        let entry = self.table.vacant(tag)?;
        let at = self.tail;
        let slots = (&self.ring).as_view().as_sys_mem();
        let slot = (|| Ok::<_, Error>(io_project!(slots, [try: at])))().ok()?;
        Some(Room {
            slot,
            entry,
            words: &self.words,
            tag,
            next: if at + 1 == self.ring.len() { 0 } else { at + 1 },
            tail: &mut self.tail,
        })
    }

    /// Writes the entry of a command that has no request.
    fn push(&mut self, entry: SqEntry) {
        let at = self.tail;
        let slots = (&self.ring).as_view().as_sys_mem();
        if let Ok(slot) = (|| Ok::<_, Error>(io_project!(slots, [try: at])))() {
            write(slot, entry);
            self.tail = if at + 1 == self.ring.len() { 0 } else { at + 1 };
        }
    }

    /// Tells the controller of the commands that were pushed.
    #[inline]
    pub(crate) fn announce(&mut self, guard: &rcu::Guard) {
        if self.is_open && self.announced != self.tail {
            self.announced = self.tail;
            // A controller that is gone is noticed when the commands time out.
            let _ = self.doorbell.ring(guard, self.tail as u32);
        }
    }
}

/// How a queue pair is made.
#[derive(Clone, Copy)]
pub(crate) struct QueueOptions<'a> {
    pub(crate) dev: &'a pci::Device<Bound>,
    pub(crate) registers: &'a Registers,
    pub(crate) alarm: &'a Arc<Alarm>,
    /// What takes the completion of a command that has no request.
    pub(crate) events: Option<&'a Arc<dyn EventSink>>,
    pub(crate) vectors: &'a Arc<IrqVectors>,
    /// The interrupt vector; [`None`] for queues that are polled.
    pub(crate) vector: Option<u32>,
    /// The name of the interrupt.
    pub(crate) name: &'a CStr,
    /// The number of the queue pair, which is 0 for the admin queues.
    pub(crate) id: u16,
    /// The number of entries of each queue: 2 to 4096.
    pub(crate) entries: u16,
}

/// A queue pair, which exists for the controller while it is open.
#[pin_data]
pub(crate) struct QueuePair<C: Command> {
    gate: Atomic<u32>,
    #[pin]
    submission: SpinLock<Option<Submission<C>>>,
    #[pin]
    completion: Mutex<Option<Exclusive<CompletionQueue<C>>>>,
    /// The completion queue if it is polled.
    #[pin]
    polled: SpinLock<Option<CompletionQueue<C>>>,
    /// The memory of that queue.
    ring: RcuSlot<Arc<Ring>>,
}

/// The names of the lock classes, of which each has a single address.
static SUBMISSION_NAME: &CStr = c"rnvme_submission";
static COMPLETION_NAME: &CStr = c"rnvme_completion";
static POLLED_NAME: &CStr = c"rnvme_polled";

impl<C: Command> QueuePair<C> {
    /// Makes a queue pair that is paused.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                gate: Atomic::new(Gate::Paused as u32),
                submission <- SpinLock::new(None, SUBMISSION_NAME, static_lock_class!()),
                completion <- Mutex::new(None, COMPLETION_NAME, static_lock_class!()),
                polled <- SpinLock::new(None, POLLED_NAME, static_lock_class!()),
                ring: RcuSlot::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns what happens to a request that comes now.
    #[inline]
    pub(crate) fn gate(&self) -> Gate {
        match self.gate.load(Relaxed) {
            0 => Gate::Open,
            1 => Gate::Paused,
            _ => Gate::Dead,
        }
    }

    /// Makes the memory of the queues, which the controller does not know of yet. Returns the
    /// addresses of the submission queue and the completion queue.
    ///
    /// The queue pair remains paused.
    pub(crate) fn prepare(&self, with: &QueueOptions<'_>) -> Result<(u64, u64)> {
        let dev = with.dev.as_ref();
        let entries = usize::from(with.entries);
        // One entry of a queue is always empty: else a full one would look like an empty one.
        let (submitter, completer) = RequestTable::new(u32::from(with.entries) - 1)?;
        let submission = Submission {
            ring: Coherent::zeroed_slice(dev, entries, GFP_KERNEL)?,
            doorbell: with.registers.doorbell(with.id, Side::Submission)?,
            table: submitter,
            words: Coherent::zeroed_slice(dev, entries + PAGE_SIZE as usize / 16, GFP_KERNEL)?,
            is_open: false,
            id: with.id,
            tail: 0,
            announced: 0,
        };
        let doorbell = with.registers.doorbell(with.id, Side::Completion)?;
        let alarm = with.alarm.clone();
        let events = with.events.cloned();
        let completion = CompletionQueue::new(dev, entries, doorbell, completer, alarm, events)?;
        let addresses = (submission.ring.dma_address(), completion.address());
        match with.vector {
            Some(vector) => {
                let handler =
                    Exclusive::new(with.dev, with.vectors, vector, with.name, completion)?;
                let old = self.completion.lock().replace(handler);
                drop(old);
            }
            None => {
                let ring = completion.ring().clone();
                drop(self.ring.take()?);
                let old = self.polled.lock().replace(completion);
                drop(old);
                self.ring.insert(ring).map_err(|_| EBUSY)?;
            }
        }
        let old = self.submission.lock().replace(submission);
        drop(old);
        Ok(addresses)
    }

    /// Lets requests in, once the controller has the queues.
    pub(crate) fn open(&self) {
        self.with_submission(|submission| submission.is_open = true);
        self.gate.store(Gate::Open as u32, Relaxed);
    }

    /// Calls `f` with the submission queue; [`None`] if there is none now.
    #[inline]
    pub(crate) fn with_submission<R>(&self, f: impl FnOnce(&mut Submission<C>) -> R) -> Option<R> {
        (*self.submission.lock()).as_mut().map(f)
    }

    /// Locks the submission queue, which there is none of before [`Self::prepare`].
    ///
    /// While it is locked no request may end, for that may cause another request to be sent.
    #[inline]
    pub(crate) fn submission(&self) -> SpinLockGuard<'_, Option<Submission<C>>> {
        self.submission.lock()
    }

    /// Sends a command, and tells the controller at once.
    ///
    /// Returns the command if the queue pair is not open, or the tag is not free.
    pub(crate) fn submit(
        &self,
        guard: &rcu::Guard,
        command: C,
        entry: impl FnOnce(u16) -> SqEntry,
    ) -> Result<(), C> {
        let mut submission = self.submission.lock();
        let Some(submission) = &mut *submission else {
            return Err(command);
        };
        let Some(room) = submission.room(command.request()) else {
            return Err(command);
        };
        room.put(command, entry);
        submission.announce(guard);
        Ok(())
    }

    /// Sends a command that has no request, unless there is none or the queue pair is not open.
    /// `entry` is called with the submission queue locked.
    ///
    /// The caller knows that there is room for it.
    pub(crate) fn submit_without_request(
        &self,
        guard: &rcu::Guard,
        entry: impl FnOnce() -> Option<SqEntry>,
    ) {
        self.with_submission(|submission| {
            if !submission.is_open {
                return;
            }
            if let Some(entry) = entry() {
                submission.push(entry);
                submission.announce(guard);
            }
        });
    }

    /// Tells the controller of all commands that it does not know of.
    pub(crate) fn announce(&self, guard: &rcu::Guard) {
        self.with_submission(|submission| submission.announce(guard));
    }

    /// Looks for completions that no interrupt told of. May sleep.
    pub(crate) fn look(&self) {
        if let Some(handler) = &*self.completion.lock() {
            let _ = handler.with_masked(|queue| {
                queue.process(&rcu::read_lock(), &mut IoCompletionBatch::new())
            });
        }
        self.poll(&mut IoCompletionBatch::new());
    }

    /// Completes the commands of a queue that is polled, and returns how many there were.
    ///
    /// The queue is locked only if there is a new entry.
    #[inline(always)]
    pub(crate) fn poll(&self, batch: &mut IoCompletionBatch<'_, C::Driver>) -> u32 {
        let guard = rcu::read_lock();
        match self.ring.load(&guard) {
            Some(ring) if ring.has_new() => self.process(&guard, batch),
            _ => 0,
        }
    }

    /// Completes the commands of a queue that is polled. Most looks find none, so this is apart.
    #[inline(never)]
    fn process(&self, guard: &rcu::Guard, batch: &mut IoCompletionBatch<'_, C::Driver>) -> u32 {
        match &mut *self.polled.lock() {
            Some(queue) => queue.process(guard, batch).unwrap_or(0),
            None => 0,
        }
    }

    /// Returns the number of the submission queue, and the identifier of a request in it, if the
    /// controller has that. If not, the request has ended, or is about to.
    pub(crate) fn identify(&self, rq: &TimedOutRequest<'_, C::Driver>) -> Option<(u16, u16)> {
        self.with_submission(|submission| {
            let cid = submission.table.id_of(rq)?;
            Some((submission.id, cid))
        })
        .flatten()
    }

    /// Calls `f` with the completion queue, if there is one. May sleep.
    fn with_completion<R>(&self, f: impl FnOnce(&mut CompletionQueue<C>) -> R) -> Option<R> {
        if let Some(handler) = &*self.completion.lock() {
            return handler.with_masked(f).ok();
        }
        (*self.polled.lock()).as_mut().map(f)
    }
}

/// A queue pair whatever its commands are.
pub(crate) trait Queue: Send + Sync {
    /// Lets no more requests in. When this returns, the controller gets none any more.
    fn close(&self, gate: Gate);

    /// Ends the commands that the controller had, or sends them again later if the queue pair is
    /// paused. The controller was stopped before. May sleep.
    fn cancel(&self);

    /// Frees the memory of the queues, and the interrupt. The controller was stopped before.
    /// Sleeps; if the queue is polled, at least for a grace period of RCU.
    ///
    /// # Errors
    ///
    /// `EDEADLK` if the caller cannot sleep. Nothing is freed then.
    fn free(&self) -> Result;

    /// Returns whether the controller gets requests.
    fn is_open(&self) -> bool;

    /// Returns whether the controller has no request. Looks at a queue that is polled.
    fn is_idle(&self) -> bool;

    /// Returns how many completions had an identifier of no command. May sleep.
    fn stray(&self) -> u64;
}

impl<C: Command> Queue for QueuePair<C> {
    fn close(&self, gate: Gate) {
        self.gate.store(gate as u32, Relaxed);
        // The memory remains, as the controller may still read it.
        self.with_submission(|submission| submission.is_open = false);
    }

    fn cancel(&self) {
        let again = self.gate() == Gate::Paused;
        self.with_completion(|queue| queue.cancel(again));
    }

    fn free(&self) -> Result {
        self.cancel();
        // A task that polls may be looking at the memory, which the last reference to it frees.
        drop(self.ring.take()?);
        let completion = self.completion.lock().take();
        drop(completion);
        let polled = self.polled.lock().take();
        drop(polled);
        let submission = self.submission.lock().take();
        drop(submission);
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.gate() == Gate::Open
    }

    fn is_idle(&self) -> bool {
        self.poll(&mut IoCompletionBatch::new());
        self.with_submission(|submission| submission.table.table().count() == 0)
            .unwrap_or(true)
    }

    fn stray(&self) -> u64 {
        self.with_completion(|queue| queue.stray()).unwrap_or(0)
    }
}
