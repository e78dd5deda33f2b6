// SPDX-License-Identifier: GPL-2.0

//! The clones of a bio, by which a disk passes it on to other disks.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use super::{
    bio_set::BioSet,
    disk_data::DiskData,
    handle::{
        end_kept,
        RawBio, //
    },
    Bio,
    Operations,
    OwnedBio, //
};
use crate::{
    alloc::flags::GFP_NOWAIT,
    bindings,
    block::{
        bdev::{
            BdevFile,
            BdevRef, //
        },
        mq::{
            memalloc_noio,
            Op, //
        },
        status,
        BlkResult,
        BlkStatus,
        Sector,
        Sectors,
        SECTOR_SIZE, //
    },
    gfp,
    late_drop::check_may_sleep,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        rcu, //
    },
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::{
        Deref,
        Range, //
    },
    ptr::{
        self,
        NonNull, //
    },
};

/// A bio that is served by clones of it, which other disks get.
///
/// Each clone covers a part of the bio. When the driver has [ended](Self::end) this and all clones
/// have ended, the driver gets the bio back in [`Operations::clones_ended`], which ends it unless
/// the driver does something else. Dropping this is to end it with [`BlkStatus::IOERR`].
///
/// The clones that are submitted in a callback of the block layer start when that has returned.
/// Disks that pass bios to each other in a circle never end them, and take memory for each clone.
/// Each disk on top of another one takes some hundred bytes of the stack when a bio ends.
///
/// # Examples
///
/// A disk that shows another one, from a sector on:
///
/// ```
/// use kernel::{
///     block::{bdev::*, bio_based::*, gendisk::*, BlkStatus, Sector, Sectors},
///     prelude::*,
///     static_lock_class,
/// };
///
/// struct Linear {
///     lower: BdevFile,
///     start: Sectors,
/// }
///
/// #[vtable]
/// impl Operations for Linear {
///     type QueueData = Self;
///     const RESERVED_CLONES: u32 = 16;
///
///     fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
///         let this = bio.queue_data();
///         let mut clones = bio.keep().into_clones();
///         let (all, to) = (Sectors::ZERO..clones.sectors(), clones.sector() + this.start);
///         let submitted = clones.submit(all, &this.lower, to);
///         clones.end(submitted.map_err(BlkStatus::from));
///     }
/// }
///
/// fn build(path: &CStr, start: Sectors) -> Result<GenDisk<Linear, Bios>> {
///     let lower = BdevFile::open_by_path(path, Access::ReadWrite)?;
///     let capacity = lower.capacity().0.checked_sub(start.0).ok_or(ENOSPC)?;
///     GenDiskBuilder::bio_based(static_lock_class!())
///         .capacity(Sectors(capacity))
///         .limits(lower.limits()?)
///         .build(c"rust_linear_doc", Ok(Linear { lower, start }))?
///         .add()
/// }
/// assert_eq!(build(c"/nothing", Sectors::ZERO).err(), Some(ENOENT));
/// ```
///
/// # Invariants
///
/// It owns the bio, which is for a disk of `T`, and a reference to `q_usage_counter` of its queue,
/// together with the clones. It owns one count of the bio's `State`.
#[must_use = "dropping it ends the bio with an I/O error"]
pub struct Clones<T: Operations> {
    raw: RawBio,
    /// Whether there was a clone.
    submitted: bool,
    _driver: PhantomData<fn(T)>,
}

// SAFETY: A bio may be ended by any thread, and the driver's data of the disk is `Sync`.
unsafe impl<T: Operations> Send for Clones<T> {}

/// The state of a bio with clones: a status, with the number of those that have not ended.
///
/// It takes no memory: it is in `bi_next` of the bio, which nothing else uses while the driver owns
/// the bio. The lowest byte is the status, one of the errors. The rest is a count: one for each
/// clone, and one for [`Clones`].
struct State<'a>(&'a Atomic<usize>);

/// The number in a [`State`] for a count of one.
const ONE: usize = 1 << 8;

/// What is in memory before a clone.
///
/// # Invariants
///
/// The clone owns one count of the [`State`] of `bio`.
#[repr(C)]
struct FrontPad {
    /// The bio that was cloned.
    bio: NonNull<bindings::bio>,
    start: Option<c_ulong>,
    /// Passes the bio back to the driver.
    ended: unsafe fn(RawBio, BlkResult),
    /// What the clone was submitted to.
    lower: BdevRef,
}

/// The number of bytes before a clone.
const FRONT_PAD: usize = size_of::<FrontPad>().next_multiple_of(align_of::<bindings::bio>());

// C adds this number to an address that is aligned for a bio.
static_assert!(FRONT_PAD & (align_of::<bindings::bio>() - 1) == 0);
static_assert!(align_of::<FrontPad>() <= align_of::<bindings::bio>());

/// The largest number of clones to reserve memory for.
const MAX_RESERVED: u32 = 4096;

impl<'a> State<'a> {
    /// Returns the state of a bio.
    ///
    /// # Safety
    ///
    /// The bio is served by clones. The state is not used when the last count is gone.
    unsafe fn of(bio: NonNull<bindings::bio>) -> Self {
        // SAFETY: By the safety requirement, the bio is valid.
        let field = unsafe { &raw mut (*bio.as_ptr()).bi_next };
        // SAFETY: As above. A pointer has the size and alignment of the number, and while there are
        // clones, the field is accessed in this way only.
        Self(unsafe { Atomic::from_ptr(field.cast()) })
    }

    fn begin(&self) {
        self.0.store(ONE, Relaxed);
    }

    fn add(&self) {
        self.0.fetch_add(ONE, Relaxed);
    }

    /// Notes an error, and gives up a count. If it was the last, returns the status.
    fn put(&self, status: bindings::blk_status_t) -> Option<bindings::blk_status_t> {
        let mut old = self.0.load(Relaxed);
        loop {
            let mut new = old - ONE;
            if new % ONE == 0 {
                new |= usize::from(status);
            }
            // What was done with a clone happens before the bio ends.
            match self.0.cmpxchg(old, new, Full) {
                Ok(_) if new < ONE => return Some(new as bindings::blk_status_t),
                Ok(_) => return None,
                Err(found) => old = found,
            }
        }
    }
}

/// Initialises the data of a disk, and reserves the memory for clones that the driver asks for.
pub(crate) fn disk_data<T: Operations>(
    data: impl PinInit<T::QueueData, Error>,
) -> Result<impl PinInit<DiskData<T>, Error>> {
    const_assert!(T::RESERVED_CLONES <= MAX_RESERVED);
    let clones = match T::RESERVED_CLONES {
        0 => None,
        count => Some(KBox::pin_init(BioSet::new(count, FRONT_PAD), GFP_KERNEL)?),
    };
    Ok(DiskData::new(data, clones))
}

impl<T: Operations> OwnedBio<T> {
    /// Turns this into a bio that is served by clones.
    ///
    /// The driver must have [reserved](Operations::RESERVED_CLONES) memory for them.
    pub fn into_clones(self) -> Clones<T> {
        const_assert!(T::RESERVED_CLONES > 0);
        let raw = self.into_inner();
        // SAFETY: The bio is owned, so nothing else uses the field.
        unsafe { State::of(raw.bio) }.begin();
        // INVARIANT: `into_inner` passes on the ownership, and the count is one.
        Clones {
            raw,
            submitted: false,
            _driver: PhantomData,
        }
    }
}

impl<T: Operations> Clones<T> {
    /// Submits a clone of a part of the bio to `lower`, where it begins at `sector`.
    ///
    /// `part` counts from the beginning of the bio. It is `ZERO..ZERO` for a clone that only
    /// flushes, if the bio asks for a flush. The clone has the operation and the flags of the bio,
    /// so a driver of several disks has to flush all of them before it submits the data. Where
    /// parts of a read overlap, the memory has the data of one of them. An error of the clone
    /// itself is passed to [`Operations::clones_ended`].
    ///
    /// May sleep.
    ///
    /// # Errors
    ///
    /// Nothing was submitted then.
    ///
    /// * `EDEADLK` if `lower` is the disk of the bio, which would wait for itself when it is
    ///   frozen, or if the caller must not sleep.
    /// * `EINVAL` if the part is not one of the bio, or `lower` has larger blocks or a stricter
    ///   alignment in memory than the disk of the bio, or the part is not aligned to its blocks.
    /// * `EACCES` if the bio is not a read, and `lower` was opened to be read.
    /// * `EAGAIN` if the bio must not wait, but `lower` may, or there is no memory at once.
    pub fn submit(&mut self, part: Range<Sectors>, lower: &BdevFile, sector: Sector) -> Result {
        check_may_sleep()?;
        self.check(&part, lower, sector)?;
        let flags = if self.is_nowait() {
            GFP_NOWAIT
        } else {
            GFP_KERNEL
        };
        // SAFETY: By the type invariant, the queue is that of a disk of `T`, which is not removed
        // before the bio has ended.
        let data = unsafe { DiskData::<T>::of_queue(self.queue()) };
        let set = data.clones().ok_or(EINVAL)?;
        // SAFETY: The bio was not ended, and the memory that it is for stays until then. The set is
        // valid until the disk is removed, which waits for all clones.
        let clone = memalloc_noio(|| unsafe {
            bindings::bio_alloc_clone(
                lower.as_raw(),
                self.raw.bio.as_ptr(),
                gfp::bits(flags),
                set.as_raw(),
            )
        });
        let clone = NonNull::new(clone).ok_or(EAGAIN)?;
        if part != (Sectors::ZERO..self.sectors()) {
            // SAFETY: The clone was just allocated, and the part is inside of it.
            unsafe { bindings::bio_trim(clone.as_ptr(), part.start.0, part.end.0 - part.start.0) };
        }
        // SAFETY: As above.
        unsafe { (*clone.as_ptr()).bi_iter.bi_sector = sector.0 };
        // SAFETY: As above.
        unsafe { (*clone.as_ptr()).bi_end_io = Some(clone_ended) };
        // SAFETY: The set has as many bytes before each bio.
        let pad = unsafe { clone.byte_sub(FRONT_PAD) }.cast::<FrontPad>();
        // SAFETY: By the type invariant, `self` owns a count, so there are clones.
        unsafe { State::of(self.raw.bio) }.add();
        let values = FrontPad {
            // INVARIANT: The count was just added.
            bio: self.raw.bio,
            start: self.raw.start,
            ended: ended::<T>,
            lower: lower.get(),
        };
        // SAFETY: The bytes are aligned, and nothing else uses them.
        unsafe { pad.write(values) };
        self.submitted = true;
        // SAFETY: The clone was initialised, and C owns it from here on.
        memalloc_noio(|| unsafe { bindings::submit_bio_noacct(clone.as_ptr()) });
        Ok(())
    }

    /// Checks whether a clone may be submitted.
    fn check(&self, part: &Range<Sectors>, lower: &BdevFile, sector: Sector) -> Result {
        let device = lower.as_raw();
        // SAFETY: The device is open, so it has a queue.
        let queue = unsafe { (*device).bd_queue };
        if queue == self.queue() {
            return Err(EDEADLK);
        }
        if self.op() != Op::Read && !lower.is_writable() {
            return Err(EACCES);
        }
        let inside = part.start < part.end && part.end <= self.sectors();
        // A clone without data flushes.
        let flush = *part == (Sectors::ZERO..Sectors::ZERO) && self.is_preflush();
        // C does not cut a bio that is to be written atomically.
        let is_cut = inside && *part != (Sectors::ZERO..self.sectors());
        if !inside && !flush || is_cut && self.is_atomic() {
            return Err(EINVAL);
        }
        // SAFETY: The device is open.
        let block = unsafe { bindings::bdev_logical_block_size(device) };
        // SAFETY: As above.
        let alignment = unsafe { bindings::bdev_dma_alignment(device) };
        // SAFETY: By the type invariant, the queue is in use, so its limits do not change.
        let limits = unsafe { &(*self.queue()).limits };
        let whole = *part == (Sectors::ZERO..self.sectors());
        let cut = part.start.bytes() | part.end.bytes();
        let aligned = (cut | sector.bytes()).checked_rem(u64::from(block)) == Some(0)
            && self.bytes() % SECTOR_SIZE == 0
            // C does not check where in its memory a part begins.
            && (whole || cut & u64::from(alignment) == 0);
        if block > limits.logical_block_size || alignment & !limits.dma_alignment != 0 || !aligned {
            return Err(EINVAL);
        }
        // SAFETY: The device is open.
        if self.is_nowait() && !unsafe { bindings::bdev_nowait(device) } {
            return Err(EAGAIN);
        }
        Ok(())
    }

    /// Ends this with a result. Without a clone, the bio ends at once. Otherwise the driver gets it
    /// back when all clones have ended, with an error if this or a clone has failed.
    pub fn end(self, result: BlkResult) {
        let this = ManuallyDrop::new(self);
        let raw = RawBio { ..this.raw };
        if this.submitted {
            // SAFETY: By the type invariant, the bio is owned together with the clones, and `self`
            // owns the count.
            unsafe { put(raw, ended::<T>, status::as_raw(result)) };
        } else {
            // SAFETY: The bio is owned. Nothing uses the field before it has ended.
            unsafe { (*raw.bio.as_ptr()).bi_next = ptr::null_mut() };
            // SAFETY: By the type invariant, `self` alone owns the bio and the reference.
            unsafe { end_kept(raw, result) };
        }
    }
}

impl<T: Operations> Deref for Clones<T> {
    type Target = Bio<T>;

    #[inline]
    fn deref(&self) -> &Bio<T> {
        // SAFETY: By the type invariant, the bio does not end before `self`. `Bio` is transparent.
        unsafe { self.raw.bio.cast().as_ref() }
    }
}

impl<T: Operations> Drop for Clones<T> {
    #[cold]
    fn drop(&mut self) {
        // INVARIANT: `self` is not used after this, so it passes on the ownership.
        let this = Self {
            raw: RawBio { ..self.raw },
            ..*self
        };
        this.end(Err(BlkStatus::IOERR));
    }
}

/// Notes a status, and gives up a count. The last one passes the bio back to the driver.
///
/// # Safety
///
/// The bio, with a reference to `q_usage_counter`, is owned by all counts together. The caller
/// gives up one. `ended` is [`ended`] for the driver.
// Not inlined, so that it is not part of the driver's module.
#[inline(never)]
unsafe fn put(raw: RawBio, ended: unsafe fn(RawBio, BlkResult), status: bindings::blk_status_t) {
    // SAFETY: By the safety requirement, there is a count, which is given up.
    let Some(status) = (unsafe { State::of(raw.bio) }).put(status) else {
        return;
    };
    // SAFETY: The last count is gone, so the bio is owned.
    unsafe { (*raw.bio.as_ptr()).bi_next = ptr::null_mut() };
    // SAFETY: As above, so it has not ended.
    let part = unsafe { (*raw.bio.as_ptr()).bi_bdev };
    // SAFETY: The bio is for a disk, which has a queue.
    let queue = unsafe { (*part).bd_queue };
    // The disk, and with it the driver's module, stays until its callback has returned, though that
    // may end the last bio.
    //
    // SAFETY: The bio has not ended, so the queue is in use.
    unsafe { bindings::blk_get_usage(queue) };
    {
        // The driver cannot submit other clones here: if they ended at once, this could go on
        // without end. What it drops does not wait for this bio, either.
        let _atomic = rcu::read_lock();
        // SAFETY: The last count is gone, so the bio and the reference are passed on to the driver.
        memalloc_noio(|| unsafe { ended(raw, status::from_raw(status)) });
    }
    // SAFETY: The reference was taken above.
    unsafe { bindings::blk_unuse_queue(queue) };
}

/// Passes a bio back to its driver.
///
/// # Safety
///
/// The caller passes ownership of a bio for a disk of `T`, and of a reference to `q_usage_counter`
/// of its queue.
unsafe fn ended<T: Operations>(raw: RawBio, result: BlkResult) {
    // SAFETY: By the safety requirement.
    T::clones_ended(unsafe { OwnedBio::from_inner(raw) }, result);
}

/// Called by C when a clone has ended.
///
/// # Safety
///
/// C calls this as `bi_end_io` of a clone that [`Clones::submit`] has submitted, and passes
/// ownership of the clone.
#[inline(never)]
unsafe extern "C" fn clone_ended(clone: *mut bindings::bio) {
    // SAFETY: By the safety requirement, there are as many bytes before it.
    let pad = unsafe { clone.byte_sub(FRONT_PAD) }.cast::<FrontPad>();
    // SAFETY: By the safety requirement, `submit` has initialised it, and it is not used again.
    let pad = unsafe { pad.read() };
    // SAFETY: By the safety requirement, the clone is valid.
    let status = unsafe { (*clone).bi_status };
    // SAFETY: The clone is owned, and is not used after this.
    unsafe { bindings::bio_put(clone) };
    drop(pad.lower);
    let raw = RawBio {
        bio: pad.bio,
        start: pad.start,
    };
    // SAFETY: By the invariant of `FrontPad`, the clone owned a count.
    unsafe { put(raw, pad.ended, status) };
}
