// SPDX-License-Identifier: GPL-2.0

//! Identify Namespace, for the NVM command set.

use super::answer::{
    byte,
    bytes,
    identifier,
    le16,
    le64,
    Answer, //
};

/// The most sectors of 512 bytes that a disk may have: the offset of its end in bytes is positive.
const MAX_SECTORS: u64 = i64::MAX as u64 >> 9;

/// Why a namespace is not usable. It has no disk then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It has no blocks, so it does not exist.
    Inactive,
    /// Its format is not one of those that it lists.
    Format,
    /// Its blocks are smaller than 512 bytes, or larger than 64 KiB.
    BlockSize,
    /// It has metadata beside its blocks.
    Metadata,
    /// Its commands are those of another command set than NVM.
    CommandSet,
    /// It has more blocks than can be addressed, or more that can be allocated than there are.
    Capacity,
}

impl Unusable {
    /// Says what is wrong, as the end of a sentence.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Inactive => "it does not exist",
            Self::Format => "its format is not one of those that it lists",
            Self::BlockSize => "its block size is not one of 512 bytes to 64 KiB",
            Self::Metadata => "it has metadata, which is not supported",
            Self::CommandSet => "its command set is not that of NVM",
            Self::Capacity => "its capacity is not valid",
        }
    }
}

/// Which writes of a namespace a power failure leaves on the disk as a whole, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtomicWrites {
    /// The most bytes that such a write may have: one block at least.
    pub(crate) max: u32,
    /// Such a write does not cross a multiple of so many bytes: a power of two that is not less
    /// than `max`, or 0 if there is no such boundary.
    pub(crate) boundary: u32,
}

impl AtomicWrites {
    /// Parses them; [`None`] if there are none, or if what is said about them is contradictory.
    ///
    /// What the controller says about all of its namespaces is ignored: the formats of these may
    /// differ.
    fn parse(data: &Answer, block_shift: u32) -> Option<Self> {
        let length = |blocks: u16| (u64::from(blocks) + 1) << block_shift;
        // The boundaries may be elsewhere, which the block layer does not know.
        if le16::<42>(data) != 0 {
            return None;
        }
        let block = Self {
            max: 1 << block_shift,
            boundary: 0,
        };
        let (has_fields, blocks) = (byte::<24>(data) & 1 << 1 != 0, le16::<36>(data));
        if !has_fields || blocks == 0 {
            return Some(block);
        }
        let (max, boundary) = (length(blocks), le16::<44>(data));
        let boundary = if boundary == 0 { 0 } else { length(boundary) };
        if boundary != 0 && (!boundary.is_power_of_two() || boundary < max) {
            return None;
        }
        // A multiple of a boundary is one of its half, too.
        let most = 1u64 << 31;
        Some(Self {
            max: max.min(most) as u32,
            boundary: boundary.min(most) as u32,
        })
    }

    /// Returns the longest such write that is a power of two.
    pub(crate) fn max_power_of_two(self) -> u32 {
        1 << self.max.ilog2()
    }

    /// Returns whether a write of `len` bytes at `first` is one of these.
    pub(crate) fn contains(self, first: u64, len: u32) -> bool {
        let end = first.saturating_add(u64::from(len).saturating_sub(1));
        let is_same = |boundary: u32| (first ^ end) & !(u64::from(boundary) - 1) == 0;
        len <= self.max && (self.boundary == 0 || is_same(self.boundary))
    }
}

/// A namespace that can be used as a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// The size of a block as a power of two, 9 to 16.
    pub(crate) block_shift: u32,
    /// The capacity in sectors of 512 bytes, which is a whole number of blocks.
    pub(crate) sectors: u64,
    /// How many bytes to write at least, and at a time, if the namespace says so.
    pub(crate) preferred_write: Option<u32>,
    /// How many bytes to write at a time for the best performance, if the namespace says so.
    pub(crate) optimal_write: Option<u32>,
    /// How many bytes to discard at a time, if the namespace says so.
    pub(crate) preferred_discard: Option<u32>,
    /// What it writes atomically, if anything.
    pub(crate) atomic_writes: Option<AtomicWrites>,
    /// Whether blocks that were discarded read as zeros.
    pub(crate) discard_zeroes: bool,
    /// Whether Write Zeroes may discard blocks.
    pub(crate) zeroes_may_discard: bool,
    /// The identifier of 64 bits, if there is one.
    pub(crate) eui64: Option<[u8; 8]>,
    /// The identifier of 128 bits, if there is one.
    pub(crate) nguid: Option<[u8; 16]>,
}

impl Namespace {
    /// Parses the answer.
    pub(crate) fn parse(data: &Answer) -> Result<Self, Unusable> {
        let blocks = le64::<0>(data);
        if blocks == 0 {
            return Err(Unusable::Inactive);
        }
        if le64::<8>(data) > blocks {
            return Err(Unusable::Capacity);
        }
        let (metadata, block_shift) = format(data).ok_or(Unusable::Format)?;
        if !(9..=16).contains(&block_shift) {
            return Err(Unusable::BlockSize);
        }
        if metadata != 0 {
            return Err(Unusable::Metadata);
        }
        let sectors = 1u64 << (block_shift - 9);
        let sectors = blocks
            .checked_mul(sectors)
            .filter(|sectors| *sectors <= MAX_SECTORS)
            .ok_or(Unusable::Capacity)?;
        // Which of the fields below are there.
        let features = byte::<24>(data);
        let has_preferences = features & 1 << 4 != 0;
        let length = |blocks: u16| has_preferences.then(|| (u64::from(blocks) + 1) << block_shift);
        let length = |blocks: u16| length(blocks).and_then(|length| u32::try_from(length).ok());
        let deallocated = byte::<33>(data);
        Ok(Self {
            block_shift,
            sectors,
            preferred_write: length(le16::<64>(data)),
            // Zero stands for no preference here.
            optimal_write: Some(le16::<72>(data)).filter(|it| *it > 0).and_then(length),
            preferred_discard: length(le16::<68>(data)),
            atomic_writes: AtomicWrites::parse(data, block_shift),
            discard_zeroes: deallocated & 7 == 1,
            zeroes_may_discard: deallocated & 1 << 3 != 0,
            eui64: identifier(bytes::<120, 8>(data)),
            nguid: identifier(bytes::<104, 16>(data)),
        })
    }
}

impl Namespace {
    /// Returns whether I/O that was made for one of both is right for the other: only the capacity
    /// differs, or which lengths of I/O are fast.
    pub(crate) fn is_compatible_with(&self, other: &Self) -> bool {
        Self {
            sectors: self.sectors,
            preferred_write: self.preferred_write,
            optimal_write: self.optimal_write,
            preferred_discard: self.preferred_discard,
            ..*other
        } == *self
    }
}

/// Returns the bytes of metadata and the block size, as a power of two, of the format in use.
fn format(data: &Answer) -> Option<(u16, u32)> {
    let chosen = byte::<26>(data);
    let index = chosen & 0xf | (chosen & 0x60) >> 1;
    // Also the formats that a host must ask for, of which at most 64 exist together.
    let last = u16::from(byte::<25>(data)) + u16::from(byte::<82>(data));
    if u16::from(index) > last || index >= 64 {
        return None;
    }
    let at = 128 + 4 * usize::from(index);
    let entry = data.get(at..at + 4)?;
    Some((
        u16::from_le_bytes([entry[0], entry[1]]),
        u32::from(entry[2]),
    ))
}
