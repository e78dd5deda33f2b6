// SPDX-License-Identifier: GPL-2.0

//! The number of times that a tag set is quiesced, which is that of each of its disks.
//!
//! C keeps a count for each queue only. `blk_mq_unquiesce_tagset()` warns about a queue that joined
//! the tag set after it was quiesced, and walks hardware queues that may just be replaced.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    disk_data::DiskData,
    queue_update::QueueUpdate,
    Operations, //
};
use crate::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        barrier, //
    },
};
use core::ptr::NonNull;

/// The most often that a tag set can be quiesced, so that C's number does not overflow.
const MAX_DEPTH: u32 = 1 << 20;

/// A change of the depth.
#[derive(Clone, Copy)]
pub(super) enum DepthChange {
    /// Quiesces the tag set once more.
    Quiesce,
    /// Undoes that.
    Unquiesce,
}

/// How often a tag set is quiesced.
pub(super) struct QuiesceDepth {
    depth: Atomic<u32>,
}

/// What [`apply_to`] needs.
struct Apply<'a> {
    depth: &'a QuiesceDepth,
    update: &'a QueueUpdate,
}

impl QuiesceDepth {
    pub(super) fn new() -> Self {
        Self {
            depth: Atomic::new(0),
        }
    }

    /// Returns whether the tag set is quiesced.
    pub(super) fn is_quiesced(&self) -> bool {
        self.depth.load(Relaxed) > 0
    }

    /// Changes the depth, with effect by the next [`Self::apply`]. Each [`DepthChange::Unquiesce`]
    /// follows a [`DepthChange::Quiesce`] that has succeeded.
    ///
    /// Returns false if the tag set is quiesced too often.
    pub(super) fn change(&self, change: DepthChange) -> bool {
        match change {
            DepthChange::Quiesce => {
                let is_possible = self.depth.fetch_add(1, Relaxed) < MAX_DEPTH;
                if !is_possible {
                    self.depth.fetch_sub(1, Relaxed);
                }
                is_possible
            }
            DepthChange::Unquiesce => {
                self.depth.fetch_sub(1, Relaxed);
                true
            }
        }
    }

    /// Makes all queues of `set` quiesced as often as this says, and starts the dispatch of those
    /// that are no longer quiesced. May be called in any context.
    ///
    /// The last change of the depth prevails: each is followed by a call of this function, which
    /// reads the depth under the lock of each queue. So is the joining of a queue.
    ///
    /// # Safety
    ///
    /// `set` is a valid tag set, whose update is `update`. Each queue on it was allocated with a
    /// `DiskData<T>`, which is not dropped before a grace period after the queue has left.
    pub(super) unsafe fn apply<T: Operations>(
        &self,
        set: *mut bindings::blk_mq_tag_set,
        update: &QueueUpdate,
    ) {
        let mut apply = Apply {
            depth: self,
            update,
        };
        // Of a task that has changed the depth and one that has added a queue, one sees what the
        // other has done.
        barrier::smp_mb(barrier::Full);
        // SAFETY: By the safety requirement. The function gets its argument.
        unsafe {
            bindings::blk_visit_queues(set, (&raw mut apply).cast(), Some(apply_to::<T>));
        }
    }
}

/// Makes `queue` quiesced as often as its tag set.
///
/// # Safety
///
/// `queue` and its `DiskData<T>` are valid. `apply` points to an [`Apply`] for its tag set.
unsafe extern "C" fn apply_to<T: Operations>(
    queue: *mut bindings::request_queue,
    apply: *mut c_void,
) {
    // SAFETY: By the safety requirement.
    let apply = unsafe { &*apply.cast_const().cast::<Apply<'_>>() };
    // SAFETY: By the safety requirement.
    let data = unsafe { DiskData::<T>::of_queue(queue) };
    // SAFETY: By the safety requirement. Nothing but the helper accesses the depth of the queue; it
    // holds the lock of the queue.
    let is_started = unsafe {
        bindings::blk_set_quiesce_depth(queue, data.quiesce_depth(), apply.depth.depth.as_ptr())
    };
    // A worker dispatches what has waited. If the hardware queues may be replaced now, the queue is
    // not in use, so there is nothing to dispatch.
    if let (true, Some(queue)) = (is_started, NonNull::new(queue)) {
        let run = |queue| {
            // SAFETY: The queue is valid, and its hardware queues are not replaced.
            unsafe { bindings::blk_run_queues(queue) }
        };
        // SAFETY: By the safety requirement.
        unsafe { apply.update.with_stable_queues(queue, run) };
    }
}
