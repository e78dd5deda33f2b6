// SPDX-License-Identifier: GPL-2.0

//! A block of a pool is written by its owner only.

use kernel::{
    dma::pool::DmaBlock,
    prelude::*, //
};

#[cfg(bad)]
pub fn clear(block: &DmaBlock<u64>) -> Result {
    block.write(0, 0) //~ ERROR E0596: cannot borrow
}

#[cfg(not(bad))]
pub fn clear(block: &mut DmaBlock<u64>) -> Result {
    block.write(0, 0)
}
