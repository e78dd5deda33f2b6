// SPDX-License-Identifier: GPL-2.0

//! The commands that this driver sends, as entries of a submission queue.
//!
//! The layouts are those of the NVM Express Base Specification 2.0 and the NVM Command Set
//! Specification 1.0.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

use super::{
    data_pointer::DataPointer,
    queue_entry::SqEntry,
    user_command::UserCommand, //
};
use core::fmt;

/// Returns the entry of a command.
///
/// `last` are the command dwords 10 to 15, as three words of 64 bits.
#[inline]
fn entry(opcode: u8, cid: u16, nsid: u32, data: DataPointer, last: [u64; 3]) -> SqEntry {
    // PSDT is the bits 14 and 15: with SGL, 01b.
    let psdt = u64::from(data.is_sgl) << 14;
    [
        u64::from(opcode) | psdt | u64::from(cid) << 16 | u64::from(nsid) << 32,
        0,
        0,
        data.first,
        data.second,
        last[0],
        last[1],
        last[2],
    ]
}

/// Returns a word of 64 bits that consists of two command dwords.
#[inline]
fn dwords(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

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
    /// The limits of commands of the NVM command set.
    NvmLimits,
}

impl fmt::Display for Identify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(nsid) => write!(f, "Namespace {nsid}"),
            Self::Controller => f.write_str("Controller"),
            Self::ActiveList(nsid) => write!(f, "Active Namespace List after {nsid}"),
            Self::Descriptors(nsid) => write!(f, "Namespace Descriptors {nsid}"),
            Self::NvmLimits => f.write_str("I/O Command Set specific Controller"),
        }
    }
}

/// A queue to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewQueue {
    /// The number of the queue, which is at least 1.
    pub(crate) id: u16,
    /// The number of entries: 2 to 65,536.
    pub(crate) entries: u32,
    /// The address of the memory.
    pub(crate) address: u64,
}

/// A command for the admin queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdminCommand {
    /// Identify. The answer has the size of a page.
    Identify(Identify),
    /// Create a completion queue with an interrupt of that vector, or without interrupts.
    CreateCompletionQueue(NewQueue, Option<u16>),
    /// Create a submission queue whose commands complete in the completion queue of the same
    /// number.
    CreateSubmissionQueue(NewQueue),
    /// Set the number of I/O queue pairs, which is at least 1.
    SetQueueCount(u16),
    /// Delete the submission queue of that number.
    DeleteSubmissionQueue(u16),
    /// Delete the completion queue of that number, which has no submission queue any more.
    DeleteCompletionQueue(u16),
    /// Set which events the controller reports, as
    /// [`wanted_events`](super::event::wanted_events) returns them.
    SetEvents(u32),
    /// Get the beginning of a log page, of that many bytes: a multiple of 4, at most 4096. This
    /// clears the event that the page is about.
    GetLog { page: u8, bytes: u32 },
    /// Abort the command with that identifier in the submission queue of that number. The lowest
    /// bit of the result is 0 if it was aborted.
    Abort { queue: u16, cid: u16 },
    /// What a user wants.
    User(UserCommand),
}

impl AdminCommand {
    /// Returns the entry. `data` is the memory of the command, if it has any.
    pub(crate) fn entry(self, cid: u16, data: DataPointer) -> SqEntry {
        const DELETE_SQ: u8 = 0x00;
        const CREATE_SQ: u8 = 0x01;
        const GET_LOG: u8 = 0x02;
        const DELETE_CQ: u8 = 0x04;
        const CREATE_CQ: u8 = 0x05;
        const IDENTIFY: u8 = 0x06;
        const ABORT: u8 = 0x08;
        const SET_FEATURES: u8 = 0x09;
        const NUMBER_OF_QUEUES: u32 = 0x07;
        const ASYNC_EVENTS: u32 = 0x0b;
        const ALL_NAMESPACES: u32 = u32::MAX;
        match self {
            Self::Identify(what) => {
                let (cns, nsid) = match what {
                    Identify::Namespace(nsid) => (0, nsid),
                    Identify::Controller => (1, 0),
                    Identify::ActiveList(nsid) => (2, nsid),
                    Identify::Descriptors(nsid) => (3, nsid),
                    // The identifier of the command set is 0.
                    Identify::NvmLimits => (6, 0),
                };
                entry(IDENTIFY, cid, nsid, data, [cns, 0, 0])
            }
            Self::CreateCompletionQueue(queue, vector) => {
                // Physically contiguous; with a vector, interrupts are enabled.
                let flags = vector.map_or(0b01, |vector| u32::from(vector) << 16 | 0b11);
                queue.entry(CREATE_CQ, cid, flags)
            }
            Self::CreateSubmissionQueue(queue) => {
                // Physically contiguous.
                let flags = u32::from(queue.id) << 16 | 0b1;
                queue.entry(CREATE_SQ, cid, flags)
            }
            Self::SetQueueCount(count) => {
                let zero_based = u32::from(count.max(1) - 1);
                let counts = zero_based << 16 | zero_based;
                let last = [dwords(NUMBER_OF_QUEUES, counts), 0, 0];
                entry(SET_FEATURES, cid, 0, data, last)
            }
            Self::DeleteSubmissionQueue(queue) => {
                entry(DELETE_SQ, cid, 0, data, [queue.into(), 0, 0])
            }
            Self::DeleteCompletionQueue(queue) => {
                entry(DELETE_CQ, cid, 0, data, [queue.into(), 0, 0])
            }
            Self::SetEvents(events) => {
                let last = [dwords(ASYNC_EVENTS, events), 0, 0];
                entry(SET_FEATURES, cid, 0, data, last)
            }
            Self::GetLog { page, bytes } => {
                // The number of dwords is zero-based.
                let dwords = (bytes.clamp(4, 4096) / 4 - 1) << 16;
                let last = [u64::from(dwords | u32::from(page)), 0, 0];
                entry(GET_LOG, cid, ALL_NAMESPACES, data, last)
            }
            Self::Abort {
                queue,
                cid: aborted,
            } => {
                let what = u32::from(queue) | u32::from(aborted) << 16;
                entry(ABORT, cid, 0, data, [what.into(), 0, 0])
            }
            Self::User(command) => command.entry(cid, data),
        }
    }
}

impl NewQueue {
    fn entry(self, opcode: u8, cid: u16, flags: u32) -> SqEntry {
        let zero_based = (self.entries.clamp(2, 1 << 16) - 1) << 16;
        let memory = DataPointer {
            first: self.address,
            ..DataPointer::default()
        };
        let last = [dwords(u32::from(self.id) | zero_based, flags), 0, 0];
        entry(opcode, cid, 0, memory, last)
    }
}

/// Returns the entry of Asynchronous Event Request, which completes when there is an event.
pub(crate) fn event_request(cid: u16) -> SqEntry {
    entry(0x0c, cid, 0, DataPointer::default(), [0; 3])
}

/// Returns how many I/O queue pairs there are, from the result of
/// [`AdminCommand::SetQueueCount`] with `asked`.
pub(crate) fn granted_queues(asked: u16, result: u32) -> u16 {
    let granted = (result & 0xffff).min(result >> 16) + 1;
    // A controller may grant more than it was asked for.
    granted.min(u32::from(asked)) as u16
}

/// The blocks that a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// The number of the first block.
    pub(crate) first: u64,
    /// How many there are: 1 to 65,536, or less if the command can be about so many only.
    pub(crate) count: u32,
}

/// A command for an I/O queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IoCommand {
    opcode: u8,
    /// The command dwords 10 and 11.
    first: u64,
    /// The command dword 12.
    flags: u32,
}

impl IoCommand {
    /// Flush.
    pub(crate) const FLUSH: Self = Self {
        opcode: 0x00,
        first: 0,
        flags: 0,
    };

    /// Dataset Management: deallocate. The memory of the command has so many ranges, as
    /// [`deallocate_range`] returns them: 1 to [`MAX_DEALLOCATE_RANGES`].
    #[inline]
    pub(crate) fn deallocate(ranges: u32) -> Self {
        let zero_based = ranges.wrapping_sub(1) & 0xff;
        Self {
            opcode: 0x09,
            first: dwords(zero_based, 1 << 2),
            flags: 0,
        }
    }

    #[inline]
    fn of_blocks(opcode: u8, blocks: Blocks, flags: u32) -> Self {
        Self {
            opcode,
            first: blocks.first,
            // The count is zero-based, and has 16 bits.
            flags: blocks.count.wrapping_sub(1) & 0xffff | flags,
        }
    }

    /// Read.
    #[inline]
    pub(crate) fn read(blocks: Blocks) -> Self {
        Self::of_blocks(0x02, blocks, 0)
    }

    /// Write. `fua` says that the data must reach the medium first.
    #[inline]
    pub(crate) fn write(blocks: Blocks, fua: bool) -> Self {
        Self::of_blocks(0x01, blocks, u32::from(fua) << 30)
    }

    /// Write Zeroes. `keep` says that the blocks must not be deallocated.
    #[inline]
    pub(crate) fn write_zeroes(blocks: Blocks, keep: bool) -> Self {
        Self::of_blocks(0x08, blocks, u32::from(!keep) << 25)
    }

    /// Returns the entry for a namespace.
    #[inline]
    pub(crate) fn entry(self, cid: u16, nsid: u32, data: DataPointer) -> SqEntry {
        entry(
            self.opcode,
            cid,
            nsid,
            data,
            [self.first, u64::from(self.flags), 0],
        )
    }
}

/// The most ranges of [`IoCommand::deallocate`], which a page has room for.
pub(crate) const MAX_DEALLOCATE_RANGES: u16 = 256;

/// Returns the words of a range for [`IoCommand::deallocate`].
#[inline]
pub(crate) fn deallocate_range(blocks: Blocks) -> [u64; 2] {
    [dwords(0, blocks.count), blocks.first]
}
