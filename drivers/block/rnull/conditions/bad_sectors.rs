// SPDX-License-Identifier: GPL-2.0

//! The stage at which requests fail because of sectors that are bad.

use super::good;
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

/// The bad sectors of a device, as a disk of it heeds them.
pub(crate) struct BadSectors {
    table: Arc<BadBlocks>,
    /// What a request has met with is good from then on.
    once: bool,
    /// The blocks before the first bad one are transferred.
    partial_io: bool,
    /// A logical block.
    block: Sectors,
}

impl BadSectors {
    /// Heeds the entries of `table` as `plan` says.
    pub(crate) fn new(plan: &ValidatedConfig, table: Arc<BadBlocks>) -> Self {
        Self {
            table,
            once: plan.settings.badblocks_once,
            partial_io: plan.settings.badblocks_partial_io,
            block: Sectors::from_bytes(plan.block_size.into()),
        }
    }

    /// Whether there are none as yet.
    pub(super) fn is_empty(&self) -> bool {
        self.table.iter().next().is_none()
    }

    /// Returns how many of `len` sectors from `at` on are to be transferred, and whether that is
    /// all.
    pub(super) fn check_bad_blocks(&self, at: Sector, len: Sectors) -> (Sectors, BlkResult) {
        let Some(bad) = self.table.first(at, len) else {
            return (len, Ok(()));
        };
        if self.once {
            // All of the entry, also what lies outside of the request. It may be in the table still
            // if another request has changed it meanwhile; then a later one meets with it.
            // Interrupts are on here.
            let _ = self.table.clear(bad.start, bad.end - bad.start);
        }
        let transferred = if self.partial_io {
            Sectors(good::sectors_before(at.0, bad.start.0, self.block.0))
        } else {
            Sectors::ZERO
        };
        (transferred, Err(BlkStatus::IOERR))
    }
}
