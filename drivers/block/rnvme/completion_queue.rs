// SPDX-License-Identifier: GPL-2.0

//! A completion queue, which the handler of its interrupt has to itself.

use super::{
    alarm::{
        Alarm,
        Reason, //
    },
    queue_entry::{
        Completion,
        CqEntry,
        Place, //
    }, //
};
use kernel::{
    block::mq::{
        Completer,
        InFlight,
        IoCompletionBatch, //
    },
    device::{
        Bound,
        Device, //
    },
    dma::Coherent,
    io::{
        io_project,
        io_read,
        IoBase, //
    },
    irq::{
        exclusive::Handler,
        IrqReturn, //
    },
    pci::bar::Doorbell,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        barrier::{
            dma_mb,
            Read, //
        },
        rcu,
        Arc, //
    },
    time::{
        Instant,
        Monotonic, //
    },
};

/// A command that a controller has.
pub(crate) trait Command: InFlight {
    /// Ends the command as the controller says.
    fn complete(
        self,
        completion: Completion,
        guard: &rcu::Guard,
        batch: &mut IoCompletionBatch<'_, Self::Driver>,
    );

    /// Ends the command, or sends it again later. The controller was stopped before.
    fn cancel(self, guard: &rcu::Guard, again: bool);
}

/// Takes the completion of a command that has no request.
pub(crate) trait EventSink: Send + Sync {
    /// Returns false if the controller has no such command. Called in an interrupt handler.
    fn complete(&self, completion: Completion) -> bool;
}

/// The memory of a queue, of which the device writes the entries.
pub(crate) struct Ring {
    entries: Coherent<[CqEntry]>,
    /// The [`Place`] of the entry that the device writes next. The owner of the queue alone changes
    /// it, but it is read without a lock.
    head: Atomic<u64>,
}

impl Ring {
    #[inline]
    fn head(&self) -> Place {
        Place::from_word(self.head.load(Relaxed))
    }

    /// Returns whether there is a new entry. It may be taken meanwhile.
    #[inline]
    pub(crate) fn has_new(&self) -> bool {
        self.read(self.head()).is_some()
    }

    /// Returns the entry at a place, if it is new.
    ///
    /// Each word is read once. The device may change it afterwards; that makes no difference.
    #[inline(always)]
    fn read(&self, place: Place) -> Option<Completion> {
        let entries = (&self.entries).as_view().as_sys_mem();
        // The indices are in range, so this does not fail.
        (|| {
            let entry = io_project!(entries, [try: usize::from(place.index())]);
            let last = u64::from_le(io_read!(entry, [try: 1]));
            if !place.is_new(last) {
                return Err(EAGAIN);
            }
            dma_mb(Read);
            let first = u64::from_le(io_read!(entry, [try: 0]));
            Ok(Completion::parse([first, last]))
        })()
        .ok()
    }
}

/// A completion queue.
pub(crate) struct CompletionQueue<C: Command> {
    ring: Arc<Ring>,
    doorbell: Doorbell,
    table: Completer<C>,
    /// How many completions had an identifier of no command.
    stray: u64,
    /// When their number was a multiple of [`MOST_STRAY`] the last time; at first, when the queue
    /// was made.
    stray_since: Instant<Monotonic>,
    alarm: Arc<Alarm>,
    events: Option<Arc<dyn EventSink>>,
}

/// After each so many completions with wrong identifiers, the controller is reset if less than a
/// second has passed since the last time.
const MOST_STRAY: u64 = 64;

impl<C: Command> CompletionQueue<C> {
    /// Makes a queue of so many entries, which completes the commands in `table`.
    pub(crate) fn new(
        dev: &Device<Bound>,
        entries: usize,
        doorbell: Doorbell,
        table: Completer<C>,
        alarm: Arc<Alarm>,
        events: Option<Arc<dyn EventSink>>,
    ) -> Result<Self> {
        let ring = Ring {
            entries: Coherent::zeroed_slice(dev, entries, GFP_KERNEL)?,
            head: Atomic::new(Place::FIRST.word()),
        };
        Ok(Self {
            ring: Arc::new(ring, GFP_KERNEL)?,
            doorbell,
            table,
            stray: 0,
            stray_since: Instant::now(),
            alarm,
            events,
        })
    }

    /// Returns the address of the queue.
    pub(crate) fn address(&self) -> u64 {
        self.ring.entries.dma_address()
    }

    /// Returns the memory of the queue, in which a new entry can be seen without a lock.
    pub(crate) fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Returns how many completions had an identifier of no command.
    pub(crate) fn stray(&self) -> u64 {
        self.stray
    }

    /// Ends all commands, or sends them again later. The controller was stopped before.
    pub(crate) fn cancel(&mut self, again: bool) {
        let guard = rcu::read_lock();
        self.table.drain(|command| command.cancel(&guard, again));
    }

    /// Completes the commands of which there are new entries, but looks at no more entries than the
    /// queue has. Returns how many there were.
    #[inline(always)]
    pub(crate) fn process(
        &mut self,
        guard: &rcu::Guard,
        batch: &mut IoCompletionBatch<'_, C::Driver>,
    ) -> Result<u32> {
        let entries = self.ring.entries.len();
        let mut head = self.ring.head();
        let mut seen = 0;
        while seen < entries {
            let Some(completion) = self.ring.read(head) else {
                break;
            };
            head = head.next(entries);
            seen += 1;
            match self.table.take(completion.cid()) {
                Some(command) => command.complete(completion, guard, batch),
                None => self.without_request(completion),
            }
        }
        if seen > 0 {
            self.ring.head.store(head.word(), Relaxed);
            self.doorbell.ring(guard, u32::from(head.index()))?;
        }
        // At most as many as the queue has.
        Ok(seen as u32)
    }

    /// Takes a completion whose identifier is that of no request: there is an event; or the
    /// identifier is that of no command, which is counted. A controller that sends many of these is
    /// reset.
    #[cold]
    fn without_request(&mut self, completion: Completion) {
        let events = self.events.as_ref();
        if events.is_some_and(|events| events.complete(completion)) {
            return;
        }
        self.stray += 1;
        if self.stray % MOST_STRAY == 0 {
            if self.stray_since.elapsed().as_millis() < 1000 {
                self.alarm.raise(Reason::StrayCompletions);
            }
            self.stray_since = Instant::now();
        }
    }
}

#[vtable]
impl<C: Command> Handler for CompletionQueue<C> {
    fn handle(&mut self, guard: &rcu::Guard) -> IrqReturn {
        // Dropped after the doorbell was rung, which ends the commands that succeeded.
        let mut batch = IoCompletionBatch::new();
        match self.process(guard, &mut batch) {
            Ok(1..) => IrqReturn::Handled,
            _ => IrqReturn::None,
        }
    }
}
