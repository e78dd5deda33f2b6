// SPDX-License-Identifier: GPL-2.0

//! The handles of a bio, which own it.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use super::{
    Bio,
    Operations, //
};
use crate::{
    alloc::{
        flags::GFP_NOWAIT,
        Flags, //
    },
    bindings,
    block::{
        bio::Transfer,
        limits,
        status,
        BlkResult,
        BlkStatus, //
    },
    prelude::*, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

/// A bio that has not ended, with the time at which its I/O statistics were started.
pub(super) struct RawBio {
    pub(super) bio: NonNull<bindings::bio>,
    /// In jiffies. [`None`] if the disk has no statistics.
    pub(super) start: Option<c_ulong>,
}

impl RawBio {
    /// Ends the bio.
    ///
    /// # Safety
    ///
    /// The caller owns the bio, whose queue is in use, and gives it up.
    #[inline]
    pub(super) unsafe fn end(self, result: BlkResult) {
        let bio = self.bio.as_ptr();
        if let Some(start) = self.start {
            // SAFETY: By the safety requirement, the bio is valid, and `start` is what the
            // statistics of this bio were started with.
            unsafe { bindings::bio_account_end(bio, start) };
        }
        if result.is_err() {
            // Without an error, the status stays: that of the rest of a bio that was split is an
            // error if the first part has failed.
            //
            // SAFETY: By the safety requirement.
            unsafe { (*bio).bi_status = status::as_raw(result) };
        }
        // SAFETY: By the safety requirement.
        unsafe { bindings::bio_endio(bio) };
    }
}

/// A bio in the callback that it was submitted to.
///
/// It cannot leave the callback, unless the driver [keeps](Self::keep) it. Dropping it ends the bio
/// with [`BlkStatus::IOERR`].
///
/// # Examples
///
/// ```
/// use kernel::block::{bio_based::{Operations, SubmittedBio}, BlkStatus};
///
/// /// Ends a bio at once, or passes it to `later`.
/// fn submit_bio<'q, T: Operations>(
///     bio: SubmittedBio<'q, T>,
///     later: impl FnOnce(kernel::block::bio_based::OwnedBio<T>),
/// ) {
///     if bio.is_nowait() {
///         bio.end(Err(BlkStatus::AGAIN));
///     } else {
///         later(bio.keep());
///     }
/// }
/// ```
///
/// # Invariants
///
/// It owns the bio, which is for a disk of `T`. The callback that `'q` stands for is running in
/// this task, and C holds a reference to `q_usage_counter` meanwhile.
#[must_use = "dropping a bio ends it with an I/O error"]
pub struct SubmittedBio<'q, T: Operations> {
    raw: RawBio,
    /// Invariant in `'q`.
    _callback: PhantomData<fn(&'q ()) -> &'q ()>,
    /// Neither `Send` nor `Sync`.
    _driver: PhantomData<*mut T>,
}

impl<'q, T: Operations> SubmittedBio<'q, T> {
    /// # Safety
    ///
    /// The type invariant holds for `bio`, and the result takes ownership of it.
    #[inline]
    pub(super) unsafe fn from_raw(bio: NonNull<bindings::bio>) -> Self {
        // INVARIANT: By the safety requirement.
        let mut this = Self {
            raw: RawBio { bio, start: None },
            _callback: PhantomData,
            _driver: PhantomData,
        };
        // SAFETY: By the type invariant, the queue is in use, so its limits do not change.
        if limits::has_io_stat(unsafe { (*this.queue()).limits.features }) {
            // SAFETY: By the type invariant, the bio is valid.
            this.raw.start = Some(unsafe { bindings::bio_start_io_acct(bio.as_ptr()) });
        }
        this
    }

    /// Gives up ownership of the bio.
    #[inline]
    fn into_inner(self) -> RawBio {
        let this = ManuallyDrop::new(self);
        RawBio { ..this.raw }
    }

    /// Returns the driver data of the disk, which is valid for the whole callback.
    #[inline]
    pub fn queue_data(&self) -> &'q T::QueueData {
        let data: *const T::QueueData = Bio::queue_data(self);
        // SAFETY: By the type invariant, C holds a reference to `q_usage_counter` during the
        // callback, so the disk is not removed, and its data not dropped.
        unsafe { &*data }
    }

    /// Returns the flags to allocate memory with: `GFP_NOWAIT` if the bio must not wait, otherwise
    /// `GFP_KERNEL`, which is equal to `GFP_NOIO` in the callback.
    #[inline]
    pub fn gfp(&self) -> Flags {
        if self.is_nowait() {
            GFP_NOWAIT
        } else {
            GFP_KERNEL
        }
    }

    /// Returns the memory that the bio reads into or writes from.
    ///
    /// The result borrows from the bio, which therefore cannot end before its last use.
    #[inline]
    pub fn transfer(&self) -> Transfer<'_> {
        // SAFETY: By the type invariant, `self` owns the bio, which does not end while it is
        // borrowed.
        unsafe { Transfer::from_bio(self.raw.bio.as_ptr()) }
    }

    /// Ends the bio.
    #[inline]
    pub fn end(self, result: BlkResult) {
        // SAFETY: By the type invariant, `into_inner` passes on the ownership, and the queue is in
        // use.
        unsafe { self.into_inner().end(result) };
    }

    /// Keeps the bio past the end of the callback. The queue is in use until it has ended.
    #[inline]
    pub fn keep(self) -> OwnedBio<T> {
        // SAFETY: By the type invariant, the queue is in use.
        unsafe { bindings::blk_get_usage(self.queue()) };
        // INVARIANT: `into_inner` passes on the ownership, and the reference was just taken.
        OwnedBio {
            raw: self.into_inner(),
            _driver: PhantomData,
        }
    }
}

impl<T: Operations> Deref for SubmittedBio<'_, T> {
    type Target = Bio<T>;

    #[inline]
    fn deref(&self) -> &Bio<T> {
        // SAFETY: By the type invariant, `self` owns the bio. `Bio` is transparent.
        unsafe { self.raw.bio.cast().as_ref() }
    }
}

impl<T: Operations> Drop for SubmittedBio<'_, T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, `self` owns the bio, which is not used after this, and the
        // queue is in use.
        unsafe { RawBio { ..self.raw }.end(Err(BlkStatus::IOERR)) };
    }
}

/// A bio that the driver keeps, to be ended in any context.
///
/// Freezing the queue and removing the disk wait for it, so it must not wait for either. Dropping
/// it ends the bio with [`BlkStatus::IOERR`].
///
/// # Examples
///
/// ```
/// use kernel::block::{bio::Transfer, bio_based::{Operations, OwnedBio}};
///
/// /// Serves a read in a worker.
/// fn serve<T: Operations>(bio: OwnedBio<T>) {
///     if let Transfer::FromDisk(mut memory) = bio.transfer() {
///         memory.fill(0);
///     }
///     bio.end(Ok(()));
/// }
/// ```
///
/// # Invariants
///
/// It owns the bio, which is for a disk of `T`, and a reference to `q_usage_counter` of its queue.
#[must_use = "dropping a bio ends it with an I/O error"]
pub struct OwnedBio<T: Operations> {
    raw: RawBio,
    _driver: PhantomData<fn(T)>,
}

// SAFETY: A bio may be ended by any thread, and the driver's data of the disk is `Sync`.
unsafe impl<T: Operations> Send for OwnedBio<T> {}

impl<T: Operations> OwnedBio<T> {
    /// # Safety
    ///
    /// The type invariant holds for `raw`, and the result takes ownership of both.
    #[inline]
    pub(super) unsafe fn from_inner(raw: RawBio) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            raw,
            _driver: PhantomData,
        }
    }

    /// Gives up ownership of the bio, and of the reference to `q_usage_counter`.
    #[inline]
    pub(super) fn into_inner(self) -> RawBio {
        let this = ManuallyDrop::new(self);
        RawBio { ..this.raw }
    }

    /// Returns the memory that the bio reads into or writes from.
    ///
    /// The result borrows from the bio, which therefore cannot end before its last use.
    #[inline]
    pub fn transfer(&self) -> Transfer<'_> {
        // SAFETY: By the type invariant, `self` owns the bio, which does not end while it is
        // borrowed.
        unsafe { Transfer::from_bio(self.raw.bio.as_ptr()) }
    }

    /// Ends the bio.
    #[inline]
    pub fn end(self, result: BlkResult) {
        // SAFETY: By the type invariant, `into_inner` passes on the ownership of both.
        unsafe { end_kept(self.into_inner(), result) };
    }
}

/// Ends a bio that was kept.
///
/// # Safety
///
/// The caller passes ownership of the bio, and of a reference to `q_usage_counter` of its queue.
#[inline]
pub(super) unsafe fn end_kept(raw: RawBio, result: BlkResult) {
    // SAFETY: By the safety requirement, the bio is valid.
    let part = unsafe { (*raw.bio.as_ptr()).bi_bdev };
    // SAFETY: By the safety requirement, the bio is for a disk, which has a queue.
    let queue = unsafe { (*part).bd_queue };
    // SAFETY: By the safety requirement, the queue is in use.
    unsafe { raw.end(result) };
    // SAFETY: By the safety requirement, the reference is held.
    unsafe { bindings::blk_unuse_queue(queue) };
}

impl<T: Operations> Deref for OwnedBio<T> {
    type Target = Bio<T>;

    #[inline]
    fn deref(&self) -> &Bio<T> {
        // SAFETY: By the type invariant, `self` owns the bio. `Bio` is transparent.
        unsafe { self.raw.bio.cast().as_ref() }
    }
}

impl<T: Operations> Drop for OwnedBio<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, `self` owns both, which are not used after this.
        unsafe { end_kept(RawBio { ..self.raw }, Err(BlkStatus::IOERR)) };
    }
}
