// SPDX-License-Identifier: GPL-2.0

//! The places where code of a driver runs.

use super::chance::Chance;

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

    /// Whether the place is a callback of the block layer, or is called by its abstractions.
    pub(crate) fn is_callback(self) -> bool {
        (self as u8) < Self::Interrupt as u8
    }
}
