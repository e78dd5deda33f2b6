// SPDX-License-Identifier: GPL-2.0

//! Identify Controller, for the NVM command set: the limits of its commands.

use super::answer::{
    byte,
    le32,
    Answer, //
};

/// The limits of commands. Controllers that do not know the question have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NvmLimits {
    /// The most bytes that Write Zeroes may write; [`None`] if as many as a transfer moves.
    pub(crate) write_zeroes: Option<u32>,
    /// The most blocks that a range to be deallocated may have; [`None`] if there is no limit.
    pub(crate) deallocate: Option<u32>,
    /// The most ranges that are deallocated at once; [`None`] if there is no limit.
    pub(crate) deallocate_ranges: Option<u8>,
}

impl NvmLimits {
    /// Parses the answer.
    pub(crate) fn parse(data: &Answer) -> Self {
        Self {
            // A power of two of pages. What does not fit is more than anything that is asked for.
            write_zeroes: match byte::<1>(data) {
                0 => None,
                exponent @ 1..=19 => Some(4096 << exponent),
                _ => Some(1 << 31),
            },
            deallocate_ranges: Some(byte::<3>(data)).filter(|ranges| *ranges > 0),
            deallocate: Some(le32::<4>(data)).filter(|blocks| *blocks > 0),
        }
    }
}
