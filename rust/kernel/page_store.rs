// SPDX-License-Identifier: GPL-2.0

//! A sparse array of bytes that holds the contents of a disk in memory.
//!
//! A [`PageStore`] is what a memory-backed block device keeps its data in. It has no size: any byte
//! can be read, and is zero until it is written; pages come into being when they are first written
//! to, and go when the last of their sectors is removed.
//!
//! # Exclusion
//!
//! A block device promises that a logical block is read and written as a whole, not that a request
//! is. Pages are kept in leaves, each for 1 MiB, and writers take the lock of the leaf:
//!
//! ```text
//!     XArray: leaf number -> leaf
//!    +------+-------------------------+   +------+-------------------------+
//!    | lock | page 0, 1, 2, .. 255    |   | lock | page 256, 257, .. 511   |  ...
//!    +------+-------------------------+   +------+-------------------------+
//! ```
//!
//! Readers of blocks that are no larger than a page take none: each page counts its changes, and a
//! page that changed while it was copied is copied again. Readers of larger blocks take the lock.
//!
//! # Cost
//!
//! To read the pages of a leaf takes one RCU read section and one look-up, no locked operation, no
//! store but to the reader's own memory. To write to them takes one lock more. There is one
//! `memcpy` for each page, wherever the memory at the other end is contiguous. Jobs that use
//! different leaves write to no cache line in common. A leaf has a pointer for each of its pages,
//! which with its lock takes 4 KiB where pages have 4 KiB.
//!
//! Pages that were removed from a leaf by one call are freed together, by one callback of RCU.
//!
//! # Context
//!
//! To be used from tasks, hence from `queue_rq`, not from interrupt handlers: one of these might
//! wait for a lock that the interrupted task holds. Nor with interrupts disabled, as under a lock
//! that an interrupt handler takes: the handler might have interrupted the holder of a leaf. Both
//! are refused. Requests show by their `QueueContext` that they are served by a task; what needs
//! none asks where it is.
//!
//! Memory is waited for where the caller may sleep: not under a spinlock, nor in a read section of
//! RCU. A kernel without `CONFIG_PREEMPT_COUNT` does not know of these.
//!
//! C headers: [`include/linux/xarray.h`](srctree/include/linux/xarray.h),
//! [`include/linux/seqlock.h`](srctree/include/linux/seqlock.h)

#![cfg(CONFIG_BLOCK)]

mod buffers;
mod requests;

mod cache;

mod store;

mod read;
mod remove;
mod write;

mod copy;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod witness;

mod tree;

mod leaves;

mod leaf;

mod chain;
mod page;

mod range;

mod part;
mod sectors;

mod context;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;

pub use self::{
    cache::WriteCache,
    store::PageStore, //
};
