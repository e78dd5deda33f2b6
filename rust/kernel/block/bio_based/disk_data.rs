// SPDX-License-Identifier: GPL-2.0

//! The data of a disk that gets bios: that of the driver, next to the memory for clones.

use super::{
    bio_set::BioSet,
    Operations, //
};
use crate::{
    bindings,
    prelude::*, //
};

/// The driver's data of a disk, with the memory for clones of its bios: C's `queuedata`.
// `data` is the first field, so that a pointer to this struct is also a pointer to `data`.
#[repr(C)]
#[pin_data]
pub(crate) struct DiskData<T: Operations> {
    #[pin]
    data: T::QueueData,
    /// Present if the driver reserves memory for clones.
    clones: Option<Pin<KBox<BioSet>>>,
}

impl<T: Operations> DiskData<T> {
    pub(super) fn new(
        data: impl PinInit<T::QueueData, Error>,
        clones: Option<Pin<KBox<BioSet>>>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            data <- data,
            clones,
        }? Error)
    }

    /// Returns the data of the disk that `queue` belongs to.
    ///
    /// # Safety
    ///
    /// `queue` is that of a disk of `T` whose data is not dropped for `'a`.
    #[inline]
    pub(super) unsafe fn of_queue<'a>(queue: *const bindings::request_queue) -> &'a Self {
        // SAFETY: By the safety requirement. C does not change the field.
        let data = unsafe { (*queue).queuedata };
        // SAFETY: By the safety requirement, it points to the data that the disk was built on.
        unsafe { &*data.cast_const().cast() }
    }

    /// Returns the driver's data.
    #[inline]
    pub(crate) fn data(&self) -> &T::QueueData {
        &self.data
    }

    /// Returns the memory for clones, if there is any.
    #[inline]
    pub(super) fn clones(&self) -> Option<&BioSet> {
        self.clones.as_deref()
    }
}
