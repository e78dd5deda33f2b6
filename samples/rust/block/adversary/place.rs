// SPDX-License-Identifier: GPL-2.0

//! The places where code of a driver runs.

use super::chance::Chance;
use kernel::{
    fmt,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// A callback, or another place of which a driver has code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    QueueRq,
    QueueRqs,
    CommitRqs,
    Complete,
    Expired,
    Due,
    Poll,
    Tick,
    Timeout,
    InitHwQueue,
    InitRequest,
    DropTagSetData,
    DropQueueData,
    DropHwData,
    DropRequestData,
    /// A timer of stock's, in hard interrupt context.
    Interrupt,
    /// A task, with no lock held.
    Task,
    Show,
    Store,
    MakeGroup,
    DropItem,
    DropDirectory,
    /// Under stock's `SpinLock`.
    UnderSpinLock,
    /// Under stock's `SpinLockIrq`.
    UnderSpinLockIrq,
    InterruptsOff,
}

impl Place {
    const ALL: &[Self] = &[
        Self::QueueRq,
        Self::QueueRqs,
        Self::CommitRqs,
        Self::Complete,
        Self::Expired,
        Self::Due,
        Self::Poll,
        Self::Tick,
        Self::Timeout,
        Self::InitHwQueue,
        Self::InitRequest,
        Self::DropTagSetData,
        Self::DropQueueData,
        Self::DropHwData,
        Self::DropRequestData,
        Self::Interrupt,
        Self::Task,
        Self::Show,
        Self::Store,
        Self::MakeGroup,
        Self::DropItem,
        Self::DropDirectory,
        Self::UnderSpinLock,
        Self::UnderSpinLockIrq,
        Self::InterruptsOff,
    ];

    /// One of them.
    pub(crate) fn any(chance: &mut Chance) -> Self {
        let index = chance.below(Self::ALL.len() as u64) as usize;
        Self::ALL.get(index).copied().unwrap_or(Self::Task)
    }

    /// Whether no task can wait here: in a callback of the block layer or of its abstractions, in
    /// an interrupt, under a spinlock, or with interrupts off.
    pub(crate) fn is_no_task(self) -> bool {
        let place = self as u8;
        place <= Self::Interrupt as u8 || place >= Self::UnderSpinLock as u8
    }

    /// Counts that the driver did something here.
    pub(crate) fn reached(self) {
        if let Some(counts) = COUNTS.get(self as usize) {
            counts.reached.fetch_add(1, Relaxed);
        }
    }

    /// Counts that a handle was dropped here.
    pub(crate) fn dropped(self) {
        if let Some(counts) = COUNTS.get(self as usize) {
            counts.drops.fetch_add(1, Relaxed);
        }
    }

    /// Says of each place how often the driver did something there, and dropped a handle.
    pub(crate) fn write_counts(to: &mut impl fmt::Write) -> Result {
        for (place, counts) in Self::ALL.iter().zip(&COUNTS) {
            let (reached, drops) = (counts.reached.load(Relaxed), counts.drops.load(Relaxed));
            writeln!(to, "{place:?} {reached} {drops}")?;
        }
        Ok(())
    }
}

/// What was done in a place since the module was loaded.
struct Counts {
    reached: Atomic<u32>,
    drops: Atomic<u32>,
}

/// That of each place.
static COUNTS: [Counts; Place::ALL.len()] = [const {
    Counts {
        reached: Atomic::new(0),
        drops: Atomic::new(0),
    }
}; Place::ALL.len()];
