// SPDX-License-Identifier: GPL-2.0

//! The locks that keep the writers of neighbouring pages from each other.
//!
//! A lock is for the pages that hang from one node of the tree, and for those of some other nodes,
//! far away. Each has a cache line to itself, so jobs that write to different parts of a disk do
//! not notice each other.

use super::range::NODE_PAGES;
use crate::{
    c_str,
    prelude::*,
    sync::{
        lock::spinlock::SpinLockGuard,
        LockClassKey,
        SpinLock, //
    },
};

/// How many locks there are.
const COUNT: usize = 64;

/// One of the locks.
#[pin_data]
#[repr(align(64))]
struct Stripe {
    #[pin]
    lock: SpinLock<()>,
}

/// All the locks of a store.
#[pin_data]
pub(super) struct Locks {
    #[pin]
    stripes: [Stripe; COUNT],
}

impl Locks {
    /// Locks that nobody holds.
    pub(super) fn new(class: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        let stripe = move |_| {
            pin_init!(Stripe {
                lock <- SpinLock::new((), c_str!("PageStore"), class),
            })
        };
        pin_init!(Self {
            stripes <- pin_init::pin_init_array_from_fn(stripe),
        })
    }

    /// Waits for the lock of a page and its neighbours.
    #[inline]
    pub(super) fn wait(&self, page: usize) -> SpinLockGuard<'_, ()> {
        self.stripes[page / NODE_PAGES % COUNT].lock.lock()
    }
}
