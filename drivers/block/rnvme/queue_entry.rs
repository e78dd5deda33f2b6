// SPDX-License-Identifier: GPL-2.0

//! The entries of queues, as words.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

/// The words of an entry of a submission queue.
pub(crate) type SqEntry = [u64; 8];

/// The words of an entry of a completion queue.
pub(crate) type CqEntry = [u64; 2];

/// An entry of a completion queue, copied once.
///
/// It is taken apart where a part is needed: for most, little of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    first: u64,
    last: u64,
}

impl Completion {
    /// The bit of the second word that is the phase, by which an entry is known to be new.
    pub(crate) const PHASE: u64 = 1 << 48;

    /// Parses an entry.
    pub(crate) fn parse(entry: CqEntry) -> Self {
        let [first, last] = entry;
        Self { first, last }
    }

    /// Returns the identifier of the command that it says to complete.
    #[inline]
    pub(crate) fn cid(self) -> u16 {
        (self.last >> 32) as u16
    }

    /// Returns how the command ended.
    #[inline]
    pub(crate) fn status(self) -> CommandStatus {
        CommandStatus((self.last >> 49) as u16)
    }

    /// Returns what the command returned.
    pub(crate) fn result(self) -> u32 {
        self.first as u32
    }

    /// Returns what it returned beyond that, which few commands do.
    pub(crate) fn result_high(self) -> u32 {
        (self.first >> 32) as u32
    }
}

/// The place of an entry in a completion queue, and the phase that the entry has when it is new.
///
/// It is one word, so that it can be stored atomically: the index, and the phase at the bit where
/// the entry has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    /// The place of the entry that the device writes first.
    pub(crate) const FIRST: Self = Self(Completion::PHASE);

    /// Returns the place that [`Self::word`] returned.
    #[inline]
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Returns the place as a word.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// Returns the index of the entry.
    #[inline]
    pub(crate) fn index(self) -> u16 {
        // The rest is the phase.
        self.0 as u16
    }

    /// Returns whether an entry with this second word is new.
    #[inline]
    pub(crate) fn is_new(self, last: u64) -> bool {
        (self.0 ^ last) & Completion::PHASE == 0
    }

    /// Returns the place of the next entry in a queue of `entries` entries.
    #[inline]
    pub(crate) fn next(self, entries: usize) -> Self {
        if usize::from(self.index()) + 1 < entries {
            Self(self.0.wrapping_add(1))
        } else {
            Self((self.0 & Completion::PHASE) ^ Completion::PHASE)
        }
    }
}

/// How a command ended: the status field without the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandStatus(pub(crate) u16);

impl CommandStatus {
    /// Returns whether the command succeeded.
    #[inline]
    pub(crate) fn is_success(self) -> bool {
        self.code() == 0
    }

    /// Returns the type and the code of the status: 11 bits.
    #[inline]
    pub(crate) fn code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Returns whether the same command would fail again.
    pub(crate) fn is_final(self) -> bool {
        self.0 & 1 << 14 != 0
    }

    /// Returns which of the controller's delays to wait for before a retry: 1 to 3, or 0 for none.
    pub(crate) fn retry_delay(self) -> usize {
        usize::from(self.0 >> 11 & 3)
    }

    /// Returns the class of the failure; [`None`] if the command succeeded.
    pub(crate) fn failure(self) -> Option<Failure> {
        Some(match self.code() {
            0 => return None,
            0x001 | 0x002 | 0x00b | 0x180 => Failure::NotSupported,
            0x080 | 0x021 | 0x082 => Failure::Target,
            0x081 => Failure::NoSpace,
            0x083 => Failure::Reserved,
            0x182 | 0x280 | 0x281 | 0x285..=0x287 => Failure::Medium,
            0x282..=0x284 => Failure::Protection,
            0x370 => Failure::Transport,
            _ => Failure::Other,
        })
    }
}

/// The class of a failure, for which the block layer has a status each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command, or an argument of it, is unknown to the controller.
    NotSupported,
    /// The controller cannot carry out the command.
    Target,
    /// There is no space left.
    NoSpace,
    /// Another host has reserved the namespace.
    Reserved,
    /// The medium failed.
    Medium,
    /// The check of protection information failed.
    Protection,
    /// The path to the controller failed.
    Transport,
    /// Anything else.
    Other,
}
