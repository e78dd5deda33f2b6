// SPDX-License-Identifier: GPL-2.0

//! The life of a bio, for drivers that get bios instead of requests.
//!
//! A disk in memory has no use for tags, an I/O scheduler or merging: it copies the data in the
//! task that submits the I/O. Its driver implements [`Operations`], and C's `submit_bio` callback
//! passes it each bio. Each state of a bio has a handle type:
//!
//! ```text
//!  submit_bio: SubmittedBio --keep--> OwnedBio --end_later--> in a DelayQueue
//!                   |                 |     ^ |                   |
//!                   v      into_clones|     | v                   v
//!                  end                v     | end             ended by C
//!                                  Clones --end: clones_ended, when all clones have ended
//! ```
//!
//! * A bio has one owner, and its handle cannot be copied. Ending a bio consumes the handle, so a
//!   bio is not used after its end. Dropping the handle ends the bio with [`BlkStatus::IOERR`].
//! * A bio fits the limits of the disk: a longer one was split, and the rest arrives next.
//! * A [`SubmittedBio`] cannot leave the callback. An [`OwnedBio`] can, and it can be ended in any
//!   context. It holds a reference to `q_usage_counter` of the queue, as C does during the
//!   callback. So a disk is not removed, its queue is not frozen and its limits do not change
//!   before the bio has ended.
//! * The callback runs in a task, which may sleep, but in a NOIO scope, see [`memalloc_noio`]. The
//!   bios that the task submits there are collected, and submitted when the callback has returned.
//!   To wait for one of them, to freeze the queue, or to remove a disk would be to wait forever.
//!   What would do so fails with `EDEADLK` in that scope, or is left to a work item.
//! * A bio stays with its disk. [`Clones`] of it, or of its parts, are submitted to other disks,
//!   where sleeping is allowed. Each takes memory that the disk has reserved, and the bio has not
//!   ended before they have. So the disk is not removed before them, either. A clone for the disk
//!   of the bio itself fails with `EDEADLK`: freezing that disk would wait for the bio, and the bio
//!   for the clone.
//! * A flush is not an operation of its own: a bio may ask for a flush before its data, and that
//!   its data be on stable storage. [`Bio::steps`] has the order.
//!
//! Who owns what: C owns the bio until it calls the callback, then the handle does, until it passes
//! the bio back to C by ending it. The [`GenDisk`] owns the driver's data. C has a pointer to that
//! in its queue, and the data is dropped after C has waited for `q_usage_counter`.
//!
//! Leaking a handle, or [`Clones`], hangs what waits for the bio: its submitter,
//! [`NewDisk::add`] if the block layer has submitted it to look for partitions, and the removal of
//! the disk if the bio was kept. A driver that ends a bio only when it gets another one hangs what
//! waits for the first. So does a task that ends bios which were kept, if it waits for memory
//! outside of a NOIO scope: that may have to be written to this disk first.
//!
//! # Examples
//!
//! A disk that discards writes, and reads as zeros:
//!
//! ```
//! use kernel::{
//!     block::{bio::Transfer, bio_based::*, gendisk::*, Sectors},
//!     prelude::*,
//!     sync::{atomic, static_lock_class},
//! };
//!
//! struct Zeros;
//!
//! /// Counts the bios of a disk.
//! struct Served(atomic::Atomic<u32>);
//!
//! #[vtable]
//! impl Operations for Zeros {
//!     type QueueData = Served;
//!
//!     fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
//!         bio.queue_data().0.add(1, atomic::Relaxed);
//!         if let Transfer::FromDisk(mut memory) = bio.transfer() {
//!             memory.fill(0);
//!         }
//!         bio.end(Ok(()));
//!     }
//! }
//!
//! let disk: GenDisk<Zeros, Bios> = GenDiskBuilder::bio_based(static_lock_class!())
//!     .capacity(Sectors::from_mebibytes(1))
//!     .build(c"rust_zeros_doc", Ok(Served(atomic::Atomic::new(0))))?
//!     .add()?;
//! // The block layer has read the disk to look for partitions.
//! assert!(disk.queue_data().0.load(atomic::Relaxed) > 0);
//! # Ok::<(), Error>(())
//! ```
//!
//! [`BlkStatus::IOERR`]: crate::block::BlkStatus::IOERR
//! [`GenDisk`]: crate::block::gendisk::GenDisk
//! [`NewDisk::add`]: crate::block::gendisk::NewDisk::add
//! [`memalloc_noio`]: crate::block::mq::memalloc_noio
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

// In reading order. rustfmt does not sort across empty lines.

mod operations;

mod vtable;

mod delay_queue;

mod clones;

mod handle;

mod view;

mod disk_data;

mod bio_set;

// The tests expect that dropping a disk removes it at once.
#[cfg(all(CONFIG_RUST_KUNIT_TESTS, CONFIG_PREEMPT_COUNT))]
mod clone_tests;
// The tests expect that dropping a disk removes it at once.
#[cfg(all(CONFIG_RUST_KUNIT_TESTS, CONFIG_PREEMPT_COUNT))]
mod tests;

pub(crate) use self::{
    clones::disk_data,
    disk_data::DiskData,
    vtable::submit_bio, //
};
pub use self::{
    clones::Clones,
    delay_queue::DelayQueue,
    handle::{
        OwnedBio,
        SubmittedBio, //
    },
    operations::Operations,
    view::{
        Bio,
        Step, //
    },
};
