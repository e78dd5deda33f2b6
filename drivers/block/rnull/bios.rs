// SPDX-License-Identifier: GPL-2.0

//! The I/O path of a disk that gets bios: `queue_mode=0`.

use crate::{
    backing::Backing,
    config::Interrupt,
    slow_path::SlowPath, //
};
use kernel::{
    block::{
        bio::Transfer,
        bio_based::{
            DelayQueue,
            Operations,
            Step,
            SubmittedBio, //
        },
        mq::Op,
        BlkResult,
        BlkStatus, //
    },
    prelude::*,
    time::Delta, //
};

/// The operations of the driver for disks that get bios.
pub(crate) enum NullBios {}

/// The driver's data of such a disk.
pub(crate) struct BioQueue {
    backing: Option<Backing>,
    /// Of its stages only bad blocks apply to bios.
    pub(crate) slow_path: SlowPath,
    /// The bios that a timer ends. [`None`] if each ends when it was served.
    delayed: Option<DelayQueue<NullBios>>,
}

impl BioQueue {
    /// Makes the data of a disk.
    pub(crate) fn new(
        backing: Option<Backing>,
        slow_path: SlowPath,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let delayed = match interrupt {
            Interrupt::None | Interrupt::Softirq => None,
            Interrupt::Timer(delay) => Some(DelayQueue::new(Delta::from_nanos(delay))?),
        };
        Ok(Self {
            backing,
            slow_path,
            delayed,
        })
    }
}

#[vtable]
impl Operations for NullBios {
    type QueueData = BioQueue;

    fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
        let queue = bio.queue_data();
        let result = if bio.is_flush() {
            do_steps(queue, &bio)
        } else {
            do_transfer(queue, &bio)
        };
        // A bio that must not wait is submitted again, by a task that may.
        let result = result.map_err(|status| match status {
            BlkStatus::RESOURCE | BlkStatus::NOSPC if bio.is_nowait() => BlkStatus::AGAIN,
            status => status,
        });
        let Some(delayed) = &queue.delayed else {
            return bio.end(result);
        };
        let flags = bio.gfp();
        // Without memory, it is not delayed.
        if let Err(bio) = delayed.end_later(bio.keep(), result, flags) {
            bio.end(result);
        }
    }
}

/// Carries out a bio that asks for flushes.
#[cold]
fn do_steps(queue: &BioQueue, bio: &SubmittedBio<'_, NullBios>) -> BlkResult {
    bio.steps().try_for_each(|step| match step {
        Step::Flush => match &queue.backing {
            Some(backing) => backing.flush(bio.gfp()),
            None => Ok(()),
        },
        Step::Transfer => do_transfer(queue, bio),
    })
}

/// Carries out the operation of a bio.
#[inline(always)]
fn do_transfer(queue: &BioQueue, bio: &SubmittedBio<'_, NullBios>) -> BlkResult {
    if queue.slow_path.is_enabled() {
        return do_transfer_slow(queue, bio);
    }
    transfer(queue.backing.as_ref(), bio, bio.bytes())
}

/// Carries out the operation of a bio of a disk that may have bad blocks.
#[cold]
fn do_transfer_slow(queue: &BioQueue, bio: &SubmittedBio<'_, NullBios>) -> BlkResult {
    let (len, status) = queue.slow_path.check_range(bio.sector(), bio.sectors());
    transfer(queue.backing.as_ref(), bio, len.bytes() as u32).and(status)
}

/// Carries out the operation of a bio, on its first `len` bytes.
#[inline(always)]
fn transfer(backing: Option<&Backing>, bio: &SubmittedBio<'_, NullBios>, len: u32) -> BlkResult {
    let Some(backing) = backing else {
        return Ok(());
    };
    let at = bio.sector();
    match (bio.op(), bio.transfer()) {
        (_, Transfer::FromDisk(mut to)) => {
            to.truncate(len);
            backing.read(at, to)
        }
        (_, Transfer::ToDisk(mut from)) => {
            from.truncate(len);
            backing.write(bio.gfp(), at, from, bio.is_fua())
        }
        (Op::Discard, Transfer::None) => backing.discard(at, len),
        (_, Transfer::None) => Err(BlkStatus::NOTSUPP),
    }
}
