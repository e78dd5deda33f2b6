// SPDX-License-Identifier: GPL-2.0

//! The part of a request in front of a bad block.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

/// The number of sectors from `at` up to the logical block that `bad` is in.
///
/// `block` is the number of sectors in a block, a power of two; `at` is where one begins.
pub(crate) fn sectors_before(at: u64, bad: u64, block: u64) -> u64 {
    let bad_block = bad & !(block - 1);
    bad_block.saturating_sub(at)
}
