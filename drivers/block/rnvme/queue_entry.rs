// SPDX-License-Identifier: GPL-2.0

//! The entries of queues.
//!
//! Pure: imports nothing of the kernel, so the same file is compiled and tested on the host.

/// The words of an entry of a submission queue.
pub(crate) type SqEntry = [u64; 8];

/// The words of an entry of a completion queue.
pub(crate) type CqEntry = [u64; 2];

/// What Identify is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identify {
    /// The namespace with that number.
    Namespace(u32),
    /// The controller itself.
    Controller,
    /// The namespaces with a higher number than that.
    ActiveList(u32),
    /// The identifiers of the namespace with that number.
    Descriptors(u32),
}

impl Identify {
    /// Returns the entry that has the answer put at the address `to`, which is that of a page.
    pub(crate) fn entry(self, cid: u16, to: u64) -> SqEntry {
        let (cns, nsid) = match self {
            Self::Namespace(nsid) => (0, nsid),
            Self::Controller => (1, 0),
            Self::ActiveList(nsid) => (2, nsid),
            Self::Descriptors(nsid) => (3, nsid),
        };
        const OPCODE: u64 = 0x06;
        [
            OPCODE | u64::from(cid) << 16 | u64::from(nsid) << 32,
            0,
            0,
            to,
            0,
            cns,
            0,
            0,
        ]
    }
}

/// An entry of a completion queue, copied once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The identifier of the command that it says to complete.
    pub(crate) cid: u16,
    /// How the command ended.
    pub(crate) status: CommandStatus,
    /// What the command returned.
    pub(crate) result: u32,
}

impl Completion {
    /// Returns the phase, by which an entry is known to be new. It is in the second word.
    pub(crate) fn phase(word: u64) -> bool {
        word >> 48 & 1 != 0
    }

    /// Parses an entry.
    pub(crate) fn parse(entry: CqEntry) -> Self {
        Self {
            cid: (entry[1] >> 32) as u16,
            status: CommandStatus((entry[1] >> 49) as u16),
            result: entry[0] as u32,
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandStatus(u16);

impl CommandStatus {
    /// Returns whether the command succeeded.
    pub(crate) fn is_success(self) -> bool {
        self.code() == 0
    }

    /// Returns the type and the code of the status: 11 bits.
    pub(crate) fn code(self) -> u16 {
        self.0 & 0x7ff
    }
}
