// SPDX-License-Identifier: GPL-2.0

//! The places where code of a driver runs, such as callbacks.

use super::rng::Rng;
use kernel::{
    fmt,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// A callback of a driver, or a context that it creates itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CallSite {
    QueueRq,
    QueueRqs,
    CommitRqs,
    Complete,
    TimerExpired,
    DelayExpired,
    Poll,
    QueueTimerExpired,
    Timeout,
    InitHwQueue,
    InitRequest,
    ReportZones,
    SubmitBio,
    ClonesEnded,
    DropTagSetData,
    DropQueueData,
    DropHwData,
    DropRequestData,
    /// A timer of the stock abstraction, in hard interrupt context.
    Interrupt,
    /// A task that holds no lock.
    Task,
    Show,
    Store,
    MakeGroup,
    DropItem,
    DropGroup,
    /// A task that holds a stock `SpinLock`.
    UnderSpinLock,
    /// A holder of a stock `SpinLockIrq`.
    UnderSpinLockIrq,
    InterruptsOff,
}

impl CallSite {
    const ALL: &[Self] = &[
        Self::QueueRq,
        Self::QueueRqs,
        Self::CommitRqs,
        Self::Complete,
        Self::TimerExpired,
        Self::DelayExpired,
        Self::Poll,
        Self::QueueTimerExpired,
        Self::Timeout,
        Self::InitHwQueue,
        Self::InitRequest,
        Self::ReportZones,
        Self::SubmitBio,
        Self::ClonesEnded,
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
        Self::DropGroup,
        Self::UnderSpinLock,
        Self::UnderSpinLockIrq,
        Self::InterruptsOff,
    ];

    /// Returns a random one.
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let index = rng.below(Self::ALL.len() as u64) as usize;
        Self::ALL.get(index).copied().unwrap_or(Self::Task)
    }

    /// Whether no task may block here: in a callback of the block layer or of its abstractions, in
    /// an interrupt, under a spinlock, or with interrupts disabled.
    pub(crate) fn is_atomic(self) -> bool {
        let site = self as u8;
        site <= Self::Interrupt as u8 || site >= Self::UnderSpinLock as u8
    }

    /// Whether this runs in a task only, with interrupts enabled, and without a lock that
    /// interrupts take.
    pub(crate) fn is_in_task(self) -> bool {
        matches!(
            self,
            Self::QueueRq
                | Self::QueueRqs
                | Self::ReportZones
                | Self::SubmitBio
                | Self::Task
                | Self::Show
                | Self::Store
                | Self::MakeGroup
                | Self::UnderSpinLock
        )
    }

    /// Counts that the driver misused something here.
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

    /// Writes how often each was reached, and how many handles were dropped there.
    pub(crate) fn write_counts(to: &mut impl fmt::Write) -> Result {
        for (site, counts) in Self::ALL.iter().zip(&COUNTS) {
            let (reached, drops) = (counts.reached.load(Relaxed), counts.drops.load(Relaxed));
            writeln!(to, "{site:?} {reached} {drops}")?;
        }
        Ok(())
    }
}

/// The counters of a call site since the module was loaded.
struct Counts {
    reached: Atomic<u32>,
    drops: Atomic<u32>,
}

/// The counters of all call sites.
static COUNTS: [Counts; CallSite::ALL.len()] = [const {
    Counts {
        reached: Atomic::new(0),
        drops: Atomic::new(0),
    }
}; CallSite::ALL.len()];
