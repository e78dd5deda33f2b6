// SPDX-License-Identifier: GPL-2.0

//! A completion queue, which the handler of its interrupt has to itself.

use super::queue_entry::{
    Completion,
    CqEntry, //
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
        rcu, //
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

/// The queue, of which the device writes the entries.
pub(crate) struct CompletionQueue<C: Command> {
    ring: Coherent<[CqEntry]>,
    doorbell: Doorbell,
    table: Completer<C>,
    head: usize,
    /// The phase of entries that are new.
    phase: bool,
    /// How many completions were of no command.
    stray: u64,
}

impl<C: Command> CompletionQueue<C> {
    /// Makes a queue of so many entries, which completes the commands in `table`.
    pub(crate) fn new(
        dev: &Device<Bound>,
        entries: usize,
        doorbell: Doorbell,
        table: Completer<C>,
    ) -> Result<Self> {
        Ok(Self {
            ring: Coherent::zeroed_slice(dev, entries, GFP_KERNEL)?,
            doorbell,
            table,
            head: 0,
            phase: true,
            stray: 0,
        })
    }

    /// Returns the address of the queue.
    pub(crate) fn address(&self) -> u64 {
        self.ring.dma_address()
    }

    /// Returns how many completions were of no command.
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
            match self.table.take(completion.cid) {
                Some(command) => command.complete(completion, guard, batch),
                None => self.stray += 1,
            }
        }
        if seen > 0 {
            self.doorbell.ring(guard, self.head as u32)?;
        }
        // At most as many as the queue has.
        Ok(seen as u32)
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

/// What the handler of an interrupt has: a completion queue, unless that was taken out to be given
/// to another handler.
pub(crate) struct Slot<C: Command>(pub(crate) Option<CompletionQueue<C>>);

#[vtable]
impl<C: Command> Handler for Slot<C> {
    fn handle(&mut self, guard: &rcu::Guard) -> IrqReturn {
        let Some(queue) = &mut self.0 else {
            return IrqReturn::None;
        };
        // Dropped after the doorbell was rung, which ends the commands that succeeded.
        let mut batch = IoCompletionBatch::new();
        match queue.process(guard, &mut batch) {
            Ok(1..) => IrqReturn::Handled,
            _ => IrqReturn::None,
        }
    }
}
