// SPDX-License-Identifier: GPL-2.0

//! A completion queue, which the handler of its interrupt has to itself.

use super::queue_entry::Completion;
use kernel::{
    device::{
        Bound,
        Device, //
    },
    dma::Coherent,
    io::io_read,
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

/// The words of 64 bits that an entry consists of.
const WORDS: usize = 2;

/// The queue, of which the device writes the entries.
pub(crate) struct CompletionQueue {
    ring: Coherent<[u64]>,
    doorbell: Doorbell,
    head: usize,
    /// The phase of entries that are new.
    phase: bool,
    /// The identifier of the command in flight.
    expected: Option<u16>,
    /// The completion of that command.
    found: Option<Completion>,
    /// How many completions were of no command.
    stray: u64,
}

impl CompletionQueue {
    /// Makes a queue of so many entries.
    pub(crate) fn new(dev: &Device<Bound>, entries: u16, doorbell: Doorbell) -> Result<Self> {
        Ok(Self {
            ring: Coherent::zeroed_slice(dev, usize::from(entries) * WORDS, GFP_KERNEL)?,
            doorbell,
            head: 0,
            phase: true,
            expected: None,
            found: None,
            stray: 0,
        })
    }

    /// Returns the address of the queue.
    pub(crate) fn address(&self) -> u64 {
        self.ring.dma_address()
    }

    /// Says which command is about to be in flight.
    pub(crate) fn expect(&mut self, cid: u16) {
        self.expected = Some(cid);
        self.found = None;
    }

    /// Takes the completion of the command in flight, if it was found.
    pub(crate) fn take(&mut self) -> Option<Completion> {
        self.found.take()
    }

    /// Returns how many completions were of no command.
    pub(crate) fn stray(&self) -> u64 {
        self.stray
    }

    /// Looks at the new entries, at most at as many as there are. Returns whether there were any.
    ///
    /// Each word is read once. The device may change it afterwards; that makes no difference.
    pub(crate) fn process(&mut self, guard: &rcu::Guard) -> Result<bool> {
        let entries = self.ring.len() / WORDS;
        for seen in 0..entries {
            let Some(completion) = self.next()? else {
                return self.ring_doorbell(guard, seen);
            };
            if self.expected == Some(completion.cid) {
                self.expected = None;
                self.found = Some(completion);
            } else {
                self.stray += 1;
            }
        }
        self.ring_doorbell(guard, entries)
    }

    /// Takes the next entry, if it is new.
    fn next(&mut self) -> Result<Option<Completion>> {
        let at = self.head * WORDS;
        let last = u64::from_le(io_read!(self.ring, [try: at + 1]));
        if Completion::phase(last) != self.phase {
            return Ok(None);
        }
        dma_mb(Read);
        let first = io_read!(self.ring, [try: at]);
        self.head += 1;
        if self.head * WORDS == self.ring.len() {
            self.head = 0;
            self.phase = !self.phase;
        }
        Ok(Some(Completion::parse([u64::from_le(first), last])))
    }

    /// Gives entries back to the device, if there were any.
    fn ring_doorbell(&self, guard: &rcu::Guard, seen: usize) -> Result<bool> {
        if seen > 0 {
            self.doorbell.ring(guard, self.head as u32)?;
        }
        Ok(seen > 0)
    }
}

#[vtable]
impl Handler for CompletionQueue {
    fn handle(&mut self, guard: &rcu::Guard) -> IrqReturn {
        match self.process(guard) {
            Ok(true) => IrqReturn::Handled,
            _ => IrqReturn::None,
        }
    }
}
