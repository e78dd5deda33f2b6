// SPDX-License-Identifier: GPL-2.0

//! A completion queue, which the handler of its interrupt has to itself.

use super::{
    alarm::{
        Alarm,
        Reason, //
    },
    queue_entry::{
        Completion,
        CqEntry, //
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

/// The queue, of which the device writes the entries.
pub(crate) struct CompletionQueue<C: Command> {
    ring: Coherent<[CqEntry]>,
    doorbell: Doorbell,
    table: Completer<C>,
    head: usize,
    /// The phase of entries that are new.
    phase: bool,
    /// How many completions had an identifier of no command.
    stray: u64,
    /// When the first of the last [`MOST_STRAY`] of them was found.
    stray_since: Instant<Monotonic>,
    alarm: Arc<Alarm>,
    events: Option<Arc<dyn EventSink>>,
}

/// So many completions with wrong identifiers within a second have the controller reset.
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
        Ok(Self {
            ring: Coherent::zeroed_slice(dev, entries, GFP_KERNEL)?,
            doorbell,
            table,
            head: 0,
            phase: true,
            stray: 0,
            stray_since: Instant::now(),
            alarm,
            events,
        })
    }

    /// Returns the address of the queue.
    pub(crate) fn address(&self) -> u64 {
        self.ring.dma_address()
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
    ///
    /// Each word is read once. The device may change it afterwards; that makes no difference.
    #[inline(always)]
    pub(crate) fn process(
        &mut self,
        guard: &rcu::Guard,
        batch: &mut IoCompletionBatch<'_, C::Driver>,
    ) -> Result<u32> {
        let entries = self.ring.len();
        let mut seen = 0;
        while seen < entries {
            let Some(completion) = self.next()? else {
                break;
            };
            seen += 1;
            match self.table.take(completion.cid()) {
                Some(command) => command.complete(completion, guard, batch),
                None => self.without_request(completion),
            }
        }
        if seen > 0 {
            self.doorbell.ring(guard, self.head as u32)?;
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

    /// Takes the next entry, if it is new.
    #[inline]
    fn next(&mut self) -> Result<Option<Completion>> {
        let entries = (&self.ring).as_view().as_sys_mem();
        let entry = io_project!(entries, [try: self.head]);
        let last = u64::from_le(io_read!(entry, [try: 1]));
        if Completion::phase(last) != self.phase {
            return Ok(None);
        }
        dma_mb(Read);
        let first = u64::from_le(io_read!(entry, [try: 0]));
        self.head += 1;
        if self.head == self.ring.len() {
            self.head = 0;
            self.phase = !self.phase;
        }
        Ok(Some(Completion::parse([first, last])))
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
