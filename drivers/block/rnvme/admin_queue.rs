// SPDX-License-Identifier: GPL-2.0

//! The queue pair for administrative commands, of which one is in flight at a time.

use super::{
    access::Registers,
    budget::Budget,
    completion_queue::CompletionQueue,
    queue_entry::{
        Completion,
        SqEntry, //
    },
    registers::Side,
};
use kernel::{
    device::Bound,
    dma::Coherent,
    io::io_write,
    irq::exclusive::Exclusive,
    pci::{
        self,
        bar::Doorbell,
        vectors::IrqVectors, //
    },
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    time::Delta, //
};

/// The number of entries of each of the two queues.
pub(crate) const ENTRIES: u16 = 32;

/// The words of 64 bits that an entry of the submission queue consists of.
const WORDS: usize = 8;

/// For how long to wait for a command, if the budget allows.
const TIMEOUT: Delta = Delta::from_secs(60);

/// How often to look for a completion that no interrupt told of.
const INTERVAL: Delta = Delta::from_millis(1);

/// The queue pair.
pub(crate) struct AdminQueue {
    /// First: its handler is removed before the memory is freed.
    completions: Exclusive<CompletionQueue>,
    /// The addresses of the submission queue and the completion queue.
    addresses: (u64, u64),
    ring: Coherent<[u64]>,
    doorbell: Doorbell,
    tail: u16,
    cid: u16,
}

impl AdminQueue {
    /// Makes the queues, which the device does not know of yet.
    pub(crate) fn new(
        dev: &pci::Device<Bound>,
        vectors: &Arc<IrqVectors>,
        registers: &Registers<'_>,
    ) -> Result<Self> {
        let ring: Coherent<[u64]> =
            Coherent::zeroed_slice(dev.as_ref(), usize::from(ENTRIES) * WORDS, GFP_KERNEL)?;
        let doorbell = registers.doorbell(0, Side::Completion)?;
        let completions = CompletionQueue::new(dev.as_ref(), ENTRIES, doorbell)?;
        Ok(Self {
            addresses: (ring.dma_address(), completions.address()),
            completions: Exclusive::new(dev, vectors, 0, c"rnvme_admin", completions)?,
            ring,
            doorbell: registers.doorbell(0, Side::Submission)?,
            tail: 0,
            cid: 0,
        })
    }

    /// Returns the addresses of the submission queue and the completion queue.
    pub(crate) fn addresses(&self) -> (u64, u64) {
        self.addresses
    }

    /// Returns how many completions were of no command.
    pub(crate) fn stray(&self) -> u64 {
        self.completions
            .with_masked(|queue| queue.stray())
            .unwrap_or(0)
    }

    /// Sends a command, waits for it, and returns how it ended.
    ///
    /// The completion is found by the handler of the interrupt, or here if no interrupt comes.
    pub(crate) fn execute(
        &mut self,
        registers: &Registers<'_>,
        budget: &Budget,
        entry: impl FnOnce(u16) -> SqEntry,
    ) -> Result<Completion> {
        self.cid = self.cid.wrapping_add(1);
        let cid = self.cid;
        self.completions.with_masked(|queue| queue.expect(cid))?;
        self.submit(entry(cid))?;
        let found = budget.wait(
            TIMEOUT,
            INTERVAL,
            || {
                registers.check_alive()?;
                self.completions.with_masked(|queue| -> Result<_> {
                    queue.process(&rcu::read_lock())?;
                    Ok(queue.take())
                })?
            },
            |found: &Option<Completion>| found.is_some(),
        )?;
        found.ok_or(EIO)
    }

    fn submit(&mut self, entry: SqEntry) -> Result {
        let at = usize::from(self.tail) * WORDS;
        for (index, word) in entry.iter().enumerate() {
            io_write!(self.ring, [try: at + index], word.to_le());
        }
        self.tail = (self.tail + 1) % ENTRIES;
        self.doorbell.ring(&rcu::read_lock(), self.tail.into())
    }
}
