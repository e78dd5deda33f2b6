// SPDX-License-Identifier: GPL-2.0

//! The part of a tag set that callbacks access.

use super::{
    cpu_map::CpuMaps,
    hw_queue::DeferredFree,
    queue_map::{
        QueueCounts, //
        QueueMaps,
    },
    queue_update::QueueUpdate,
    quiesce_depth::QuiesceDepth,
    reserves::Reserves,
    Operations, //
};
use crate::{
    bindings,
    prelude::*,
    sync::Arc, //
};

/// The data that `driver_data` of C's tag set points to.
///
/// It is initialised before C's tag set is allocated, because callbacks run during the allocation.
#[pin_data]
pub(super) struct TagSetInner<T: Operations> {
    #[pin]
    pub(super) maps: QueueMaps,
    pub(super) queue_update: Arc<QueueUpdate>,
    pub(super) quiesce_depth: QuiesceDepth,
    pub(super) reserves: Reserves,
    #[pin]
    pub(super) retired: DeferredFree<T>,
    #[pin]
    pub(super) data: T::TagSetData,
}

impl<T: Operations> TagSetInner<T> {
    pub(super) fn new(
        counts: QueueCounts,
        tables: CpuMaps,
        data: impl PinInit<T::TagSetData, Error>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            maps <- QueueMaps::new(counts, tables),
            queue_update: Arc::new(QueueUpdate::new(), GFP_KERNEL)?,
            quiesce_depth: QuiesceDepth::new(),
            reserves: Reserves::new(),
            retired <- DeferredFree::new(),
            data <- data,
        }? Error)
    }

    /// Returns the shared part of `set`.
    ///
    /// # Safety
    ///
    /// `set` is the tag set in a [`TagSet<T>`](super::TagSet) that outlives `'a`, or one that C is
    /// allocating for such a `TagSet`.
    pub(super) unsafe fn from_raw<'a>(set: *mut bindings::blk_mq_tag_set) -> &'a Self {
        // SAFETY: By the safety requirement.
        let shared = unsafe { (*set).driver_data }.cast::<Self>();
        // SAFETY: By the safety requirement, it points to the shared part of the same tag set.
        unsafe { &*shared }
    }
}
