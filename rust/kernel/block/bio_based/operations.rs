// SPDX-License-Identifier: GPL-2.0

//! The callback that a driver of a disk with bios implements.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::{
    OwnedBio,
    SubmittedBio, //
};
use crate::{
    block::BlkResult,
    prelude::*, //
};

/// The callbacks of a driver that gets bios.
///
/// The [module](super) has an example.
#[vtable]
pub trait Operations: Sized + 'static {
    /// Driver data of a disk. It is initialised before the first callback for that disk, and
    /// dropped after the last, when all bios that were kept have ended.
    type QueueData: Send + Sync + 'static;

    /// The number of clones for which each disk reserves memory, at most 4096. With one, I/O goes
    /// on when there is no other memory. Zero if the driver makes no [`Clones`](super::Clones).
    const RESERVED_CLONES: u32 = 0;

    /// Serves a bio: ends it, or keeps it to end it later.
    ///
    /// Runs in the task that submits the bio. May sleep, in a NOIO scope. If the bio
    /// [must not wait](super::Bio::is_nowait), the callback ends it with
    /// [`BlkStatus::AGAIN`](crate::block::BlkStatus::AGAIN) instead of waiting.
    fn submit_bio<'q>(bio: SubmittedBio<'q, Self>);

    /// Takes back a bio whose [`Clones`](super::Clones) have ended. Ends it with `result`, if the
    /// driver does not do something else.
    ///
    /// `result` is an error if the driver has ended them with one, or a clone has failed; if there
    /// were several, it is one of them.
    ///
    /// Runs in any context, also in an interrupt, and must not sleep. Other clones are submitted by
    /// a worker: here, that fails with `EDEADLK`, or goes on without end in a kernel without
    /// preemption counts if they end at once.
    fn clones_ended(bio: OwnedBio<Self>, result: BlkResult) {
        bio.end(result);
    }
}
