// SPDX-License-Identifier: GPL-2.0

//! What the driver can leak, when the user wants it to.

/// A thing that is never dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Leak {
    Nothing,
    Idle,
    Refused,
    Started,
    Batch,
    RequestList,
    PendingList,
    Completing,
    Overdue,
    GenDisk,
    NewDisk,
    TagSet,
    DelayLine,
    PageStore,
    WriteCache,
}

impl Leak {
    const ALL: &[Self] = &[
        Self::Nothing,
        Self::Idle,
        Self::Refused,
        Self::Started,
        Self::Batch,
        Self::RequestList,
        Self::PendingList,
        Self::Completing,
        Self::Overdue,
        Self::GenDisk,
        Self::NewDisk,
        Self::TagSet,
        Self::DelayLine,
        Self::PageStore,
        Self::WriteCache,
    ];

    /// The one that the user calls by a number.
    pub(crate) fn of(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}
