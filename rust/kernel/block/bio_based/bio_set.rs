// SPDX-License-Identifier: GPL-2.0

//! Memory for bios, of which some is reserved: C's `struct bio_set`.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use crate::{
    bindings,
    error::to_result,
    prelude::*,
    types::Opaque, //
};

/// A set of bios.
///
/// If memory is short, allocating a bio waits until one that was reserved has ended. Some of those
/// may have been submitted in a callback, and would start when that has returned; if it is the
/// callback that waits, a worker starts them instead.
///
/// # Invariants
///
/// `raw` was initialised by `bioset_init`.
#[pin_data(PinnedDrop)]
pub(super) struct BioSet {
    #[pin]
    raw: Opaque<bindings::bio_set>,
}

// SAFETY: C's set is not bound to a thread.
unsafe impl Send for BioSet {}

// SAFETY: C synchronises what is done with a set.
unsafe impl Sync for BioSet {}

impl BioSet {
    /// Creates a set of which `reserved` bios can always be allocated, each with `front_pad` bytes
    /// before it.
    pub(super) fn new(reserved: u32, front_pad: usize) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // INVARIANT: Initialised here. C frees everything if that fails.
            raw <- Opaque::try_ffi_init(|slot: *mut bindings::bio_set| {
                // C checks fields of a set whose initialisation has failed.
                //
                // SAFETY: All zeros are a valid `bio_set`, and `slot` is valid for writes.
                unsafe { slot.write_bytes(0, 1) };
                // SAFETY: `slot` is valid, and is pinned until `Drop`.
                to_result(unsafe {
                    bindings::bioset_init(
                        slot,
                        reserved,
                        front_pad as u32,
                        bindings::BIOSET_NEED_RESCUER as i32,
                    )
                })
            }),
        }? Error)
    }

    /// Returns a pointer to C's set.
    pub(super) fn as_raw(&self) -> *mut bindings::bio_set {
        self.raw.get()
    }
}

#[pinned_drop]
impl PinnedDrop for BioSet {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant. Whoever allocates a bio keeps the set until it is freed.
        unsafe { bindings::bioset_exit(self.raw.get()) };
    }
}
