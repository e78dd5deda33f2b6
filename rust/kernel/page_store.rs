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
//! is. Writers take a lock, which is for the 64 pages that hang from the same node of the tree:
//!
//! ```text
//!     lock 0                      lock 1                      ...  lock 63      lock 0 again
//!    +---------------------------+---------------------------+    +------------+------------+
//!    | page 0 .. 63              | page 64 .. 127            |    |            |            |
//!    +---------------------------+---------------------------+    +------------+------------+
//! ```
//!
//! Readers of blocks that are no larger than a page take none: each page counts its changes, and a
//! page that changed while it was copied is copied again. Readers of larger blocks take the lock.
//!
//! # Cost
//!
//! To read 64 pages takes one RCU read section and one look-up, no locked operation, no store but
//! to the reader's own memory. To write to them takes one lock more. There is one `memcpy` for each
//! page, wherever the memory at the other end is contiguous. Beside the pages there are the nodes
//! of the XArray, 576 bytes for 64 pages, and 4 KiB of locks.
//!
//! # Context
//!
//! To be used from tasks, hence from `queue_rq` and `poll`, not from interrupt handlers: one of
//! these might wait for a lock that the interrupted task holds.
//!
//! C headers: [`include/linux/xarray.h`](srctree/include/linux/xarray.h),
//! [`include/linux/seqlock.h`](srctree/include/linux/seqlock.h)

#![cfg(CONFIG_BLOCK)]

mod buffers;

mod cache;

mod store;

mod remove;
mod transfer;

mod copy;

mod tree;

mod locks;
mod page;

mod range;
mod sectors;

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;

pub use self::{
    cache::WriteCache,
    store::PageStore, //
};
