// SPDX-License-Identifier: GPL-2.0

//! Objects that the driver leaks on request.

/// An object that is never dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Leak {
    Nothing,
    IdleRequest,
    RejectedRequest,
    StartedRequest,
    IoCompletionBatch,
    RequestList,
    PendingList,
    CompletingRequest,
    OverdueRequest,
    OwnedBio,
    Clones,
    SubmittedBio,
    GenDisk,
    NewDisk,
    TagSet,
    DelayQueue,
    Memory,
    Removed,
    BdevFile,
    BioDelayQueue,
}

impl Leak {
    const ALL: &[Self] = &[
        Self::Nothing,
        Self::IdleRequest,
        Self::RejectedRequest,
        Self::StartedRequest,
        Self::IoCompletionBatch,
        Self::RequestList,
        Self::PendingList,
        Self::CompletingRequest,
        Self::OverdueRequest,
        Self::OwnedBio,
        Self::Clones,
        Self::SubmittedBio,
        Self::GenDisk,
        Self::NewDisk,
        Self::TagSet,
        Self::DelayQueue,
        Self::Memory,
        Self::Removed,
        Self::BdevFile,
        Self::BioDelayQueue,
    ];

    /// Returns the object with this number.
    pub(crate) fn of(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}
