// SPDX-License-Identifier: GPL-2.0

//! Driver data of tag sets, disks, queues, requests, which misuses the block layer when dropped.

use super::{
    call_site::CallSite,
    misuse,
    shared::Shared, //
    variant::Variant,
};
use kernel::{
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The data of a tag set.
pub(crate) struct SetData<T: Variant> {
    pub(crate) shared: Arc<Shared<T>>,
}

impl<T: Variant> SetData<T> {
    pub(crate) fn new(shared: &Arc<Shared<T>>) -> Self {
        shared.count_created();
        Self {
            shared: shared.clone(),
        }
    }
}

impl<T: Variant> Drop for SetData<T> {
    fn drop(&mut self) {
        misuse::maybe_misuse(&self.shared, CallSite::DropTagSetData);
        self.shared.count_dropped();
    }
}

/// The data of a disk.
pub(crate) struct DiskData<T: Variant> {
    /// [`None`] for a disk that is never added.
    pub(crate) shared: Option<Arc<Shared<T>>>,
}

impl<T: Variant> DiskData<T> {
    pub(crate) fn new(shared: &Arc<Shared<T>>) -> Self {
        shared.count_created();
        Self {
            shared: Some(shared.clone()),
        }
    }
}

impl<T: Variant> Drop for DiskData<T> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            misuse::maybe_misuse(shared, CallSite::DropQueueData);
            shared.count_dropped();
        }
    }
}

/// The data of a hardware queue.
pub(crate) struct HwData<T: Variant> {
    shared: Arc<Shared<T>>,
    pub(crate) delay_queue: T::Delay,
}

impl<T: Variant> HwData<T> {
    pub(crate) fn new(shared: &Arc<Shared<T>>, delay_queue: T::Delay) -> Self {
        shared.count_created();
        Self {
            shared: shared.clone(),
            delay_queue,
        }
    }
}

impl<T: Variant> Drop for HwData<T> {
    fn drop(&mut self) {
        misuse::maybe_misuse(&self.shared, CallSite::DropHwData);
        self.shared.count_dropped();
    }
}

/// The data of a request.
pub(crate) struct Pdu<T: Variant> {
    shared: Arc<Shared<T>>,
    issues: Atomic<u32>,
}

impl<T: Variant> Pdu<T> {
    pub(crate) fn new(shared: &Arc<Shared<T>>) -> Self {
        Self {
            shared: shared.clone(),
            issues: Atomic::new(0),
        }
    }

    /// Counts how often the driver is given the request, over all of its I/Os.
    pub(crate) fn issue(&self) -> u32 {
        self.issues.fetch_add(1, Relaxed)
    }
}

impl<T: Variant> Drop for Pdu<T> {
    fn drop(&mut self) {
        misuse::maybe_misuse(&self.shared, CallSite::DropRequestData);
    }
}
