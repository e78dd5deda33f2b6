// SPDX-License-Identifier: GPL-2.0

//! The callback that a driver of a disk with bios implements.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::SubmittedBio;
use crate::prelude::*;

/// The callbacks of a driver that gets bios.
///
/// The [module](super) has an example.
#[vtable]
pub trait Operations: Sized + 'static {
    /// Driver data of a disk. It is initialised before the first callback for that disk, and
    /// dropped after the last, when all bios that were kept have ended.
    type QueueData: Send + Sync + 'static;

    /// Serves a bio: ends it, or keeps it to end it later.
    ///
    /// Runs in the task that submits the bio. May sleep, in a NOIO scope. If the bio
    /// [must not wait](super::Bio::is_nowait), the callback ends it with
    /// [`BlkStatus::AGAIN`](crate::block::BlkStatus::AGAIN) instead of waiting.
    fn submit_bio<'q>(bio: SubmittedBio<'q, Self>);
}
