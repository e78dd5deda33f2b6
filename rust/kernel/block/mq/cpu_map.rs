// SPDX-License-Identifier: GPL-2.0

//! A table of the hardware queue that serves each CPU.
//!
//! A device interrupts certain CPUs for each of its queues. A request should use the queue whose
//! interrupt arrives at the CPU that submits it.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use crate::{
    bindings,
    cpu::{
        nr_cpu_ids,
        CpuId, //
    },
    cpumask::Cpumask,
    prelude::*,
};

/// Returns the number of CPUs that can be online at the same time: C's `num_possible_cpus()`.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{possible_cpus, QueueCounts};
///
/// // A hardware queue for each CPU.
/// let counts = QueueCounts { default: possible_cpus(), ..QueueCounts::default() };
/// assert!(counts.default > 0);
/// ```
pub fn possible_cpus() -> u32 {
    // SAFETY: The helper reads a number.
    unsafe { bindings::blk_possible_cpus() }
}

/// Returns whether there can be a CPU with that number.
pub(super) fn is_possible(cpu: usize) -> bool {
    // SAFETY: The helper reads a bit. No mask has fewer bits than there are CPU ids.
    cpu < nr_cpu_ids() as usize && unsafe { bindings::blk_cpu_possible(cpu as u32) }
}

/// The queue that serves each CPU, among the queues of one type.
///
/// # Examples
///
/// A queue for each interrupt vector of a set, which serves the CPUs that the vector interrupts:
///
/// ```
/// # #[cfg(CONFIG_PCI)]
/// # mod example {
/// use kernel::{block::mq::{CpuMap, CpuMaps}, pci::vectors::IrqVectors, prelude::*};
///
/// /// `first` is the vector of the first queue.
/// fn map(vectors: &IrqVectors, first: u32, queues: u32) -> Result<CpuMaps> {
///     let default = CpuMap::new(queues, |queue| vectors.affinity(first + queue))?;
///     Ok(CpuMaps { default: Some(default), ..CpuMaps::default() })
/// }
/// # }
/// ```
///
/// Without a mask for each queue, the block layer spreads the CPUs over them:
///
/// ```
/// use kernel::{block::mq::CpuMap, cpu::CpuId};
///
/// let map = CpuMap::new(2, |_| None)?;
/// assert_eq!(map.queues(), 2);
/// assert_eq!(map.queue(CpuId::from_u32(0).ok_or(EINVAL)?), None);
///
/// // A map has a queue.
/// assert_eq!(CpuMap::new(0, |_| None).err(), Some(EINVAL));
/// # Ok::<(), Error>(())
/// ```
///
/// # Invariants
///
/// If there is a table, it has an entry for each CPU id, which is less than `queues`, and each
/// queue is in the entry of a possible CPU.
pub struct CpuMap {
    queues: u32,
    table: Option<KVVec<u32>>,
}

impl CpuMap {
    /// Creates a table from the CPUs of each queue, which `affinity` returns. A CPU of several
    /// queues is served by the last of them, and a CPU of none by the first queue.
    ///
    /// If `affinity` returns [`None`] for a queue, or a queue would serve no CPU, the block layer
    /// spreads the CPUs over the queues instead.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no queue, and `ENOMEM` if out of memory.
    pub fn new<'a>(queues: u32, affinity: impl FnMut(u32) -> Option<&'a Cpumask>) -> Result<Self> {
        if queues == 0 {
            return Err(EINVAL);
        }
        // INVARIANT: `table` checks it.
        Ok(Self {
            queues,
            table: Self::table(queues, affinity)?,
        })
    }

    /// Builds the table, unless a queue would be without a CPU.
    fn table<'a>(
        queues: u32,
        mut affinity: impl FnMut(u32) -> Option<&'a Cpumask>,
    ) -> Result<Option<KVVec<u32>>> {
        // Not each queue can have a CPU then. This also limits the loop.
        if queues > possible_cpus() {
            return Ok(None);
        }
        let mut table = KVVec::from_elem(0, nr_cpu_ids() as usize, GFP_KERNEL)?;
        for queue in 0..queues {
            let Some(mask) = affinity(queue) else {
                return Ok(None);
            };
            for (cpu, entry) in (0..).zip(table.iter_mut()) {
                if CpuId::from_u32(cpu).is_some_and(|cpu| mask.test(cpu)) {
                    *entry = queue;
                }
            }
        }
        let serves = |queue| {
            let mut entries = table.iter().enumerate();
            entries.any(|(cpu, entry)| *entry == queue && is_possible(cpu))
        };
        Ok((0..queues).all(serves).then_some(table))
    }

    /// Returns the number of queues.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Returns the queue that serves a CPU, or [`None`] if the block layer chooses it.
    pub fn queue(&self, cpu: CpuId) -> Option<u32> {
        self.entries()?.get(cpu.as_u32() as usize).copied()
    }

    /// Returns the entries of the table, if there is one.
    pub(super) fn entries(&self) -> Option<&[u32]> {
        self.table.as_deref()
    }
}

/// The tables of a tag set. The block layer spreads the CPUs over the queues of a type without a
/// table, and always over polled queues, which interrupt no CPU.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::CpuMaps;
///
/// // No tables.
/// let maps = CpuMaps::default();
/// assert!(maps.default.is_none() && maps.read.is_none());
/// ```
#[derive(Default)]
pub struct CpuMaps {
    /// That of the queues for all requests that the other types do not handle.
    pub default: Option<CpuMap>,
    /// That of the queues for reads only.
    pub read: Option<CpuMap>,
}

impl CpuMaps {
    /// Returns whether there are no tables.
    pub(super) fn is_empty(&self) -> bool {
        self.default.is_none() && self.read.is_none()
    }

    /// Returns the entries of map `map`, if it has a table for `queues` queues.
    pub(super) fn entries(&self, map: usize, queues: u32) -> Option<&[u32]> {
        let map = match map {
            0 => self.default.as_ref(),
            1 => self.read.as_ref(),
            _ => None,
        };
        map.filter(|map| map.queues == queues)?.entries()
    }

    /// Fails unless the tables are for so many queues.
    pub(super) fn check(&self, default: u32, read: u32) -> Result {
        let fits = |map: &Option<CpuMap>, queues| map.as_ref().is_none_or(|m| m.queues == queues);
        if fits(&self.default, default) && fits(&self.read, read) {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }
}
