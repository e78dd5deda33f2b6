// SPDX-License-Identifier: GPL-2.0

//! The stage at which requests to bad blocks fail.

use super::partial_io;
use crate::config::ValidatedConfig;
use kernel::{
    block::{
        badblocks::BadBlocks,
        BlkResult,
        BlkStatus,
        Sector,
        Sectors, //
    },
    sync::Arc, //
};

/// The bad blocks of a device, with the settings of its disk.
pub(crate) struct BadBlockCheck {
    table: Arc<BadBlocks>,
    /// An entry is cleared when a request has hit it.
    once: bool,
    /// The blocks in front of the first bad one are transferred.
    partial_io: bool,
    /// The size of a logical block.
    block: Sectors,
}

impl BadBlockCheck {
    /// Checks requests against `table`, with the settings of `plan`.
    pub(crate) fn new(plan: &ValidatedConfig, table: Arc<BadBlocks>) -> Self {
        Self {
            table,
            once: plan.settings.badblocks_once,
            partial_io: plan.settings.badblocks_partial_io,
            block: Sectors::from_bytes(plan.block_size.into()),
        }
    }

    /// Whether there are no bad blocks yet.
    pub(super) fn is_empty(&self) -> bool {
        self.table.iter().next().is_none()
    }

    /// Returns how many of the `len` sectors from `at` on to transfer, and the resulting status.
    // Out of line: most disks have no bad blocks, and would pay for the registers.
    #[inline(never)]
    pub(super) fn check_bad_blocks(&self, at: Sector, len: Sectors) -> (Sectors, BlkResult) {
        let Some(bad) = self.table.first(at, len) else {
            return (len, Ok(()));
        };
        if self.once {
            // The whole entry is cleared, including what is outside of the request. This can fail
            // if a user has extended the entry meanwhile, and the table has no room for what is
            // left on both sides. Then a later request hits the entry. Interrupts are enabled here.
            let _ = self.table.clear(bad.start, bad.end - bad.start);
        }
        let transferred = if self.partial_io {
            Sectors(partial_io::sectors_before(at.0, bad.start.0, self.block.0))
        } else {
            Sectors::ZERO
        };
        (transferred, Err(BlkStatus::IOERR))
    }
}
