// SPDX-License-Identifier: GPL-2.0

//! Slots that pass entries from one thread to another without a lock.
//!
//! The pointer of a slot says which of the two may access its entry:
//!
//! ```text
//!              the submitter writes the entry and the identifier,
//!              then stores the pointer (Release)
//!    null  ------------------------------------------------------->  not null
//!   (vacant) <------------------------------------------------------ (full)
//!              the completer moves the entry out,
//!              then stores null (Release)
//! ```
//!
//! Each of them loads the pointer (Acquire) first. There is one submitter and one completer at a
//! time, so the pointer does not change between the load and the store.
//!
//! All other accesses are plain ones: in some kernels, each atomic operation is a call.

use crate::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    types::Opaque, //
};
use core::{
    cell::UnsafeCell,
    ptr, //
};

/// A slot, with an entry for the `R` that its pointer points to.
///
/// # Invariants
///
/// If `rq` is not null, `entry` is initialised, and is accessed by the completer only. Else, it is
/// accessed by the submitter only. While `rq` is not null, `id` is not written. The submitter may
/// read it at any time, and the completer while `rq` is not null.
pub(super) struct Slot<R, E> {
    rq: Atomic<*mut R>,
    /// The identifier of the entry, or of the last one.
    id: UnsafeCell<u16>,
    entry: Opaque<E>,
}

impl<R, E> Slot<R, E> {
    #[inline]
    fn is_full(&self) -> bool {
        !self.rq.load(Acquire).is_null()
    }

    /// Returns the identifier of the entry, or of the last one.
    ///
    /// # Safety
    ///
    /// The caller is the submitter, or it is the completer and has found that the slot is full, and
    /// has not emptied it since.
    #[inline]
    unsafe fn id(&self) -> u16 {
        // SAFETY: By the safety requirement and the type invariant, nothing writes it meanwhile.
        unsafe { *self.id.get() }
    }

    /// Fills the slot.
    ///
    /// # Safety
    ///
    /// The caller is the submitter. It has found that the slot is vacant, and has not filled it
    /// since. `rq` is not null.
    #[inline]
    pub(super) unsafe fn fill(&self, rq: *mut R, id: u16, entry: E) {
        // SAFETY: By the safety requirement the slot is vacant, so only the submitter accesses it.
        unsafe { self.entry.get().write(entry) };
        // SAFETY: As above. The completer does not read it, and this is the submitter.
        unsafe { self.id.get().write(id) };
        // INVARIANT: The entry is initialised, and the submitter does not access it any more.
        self.rq.store(rq, Release);
    }

    /// Empties the slot.
    ///
    /// # Safety
    ///
    /// The caller is the completer. It has found that the slot is full, and has not emptied it
    /// since.
    #[inline]
    unsafe fn empty(&self) -> E {
        // SAFETY: By the safety requirement the slot is full, so by the type invariant it has an
        // entry, which only the completer accesses.
        let entry = unsafe { self.entry.get().read() };
        // INVARIANT: The entry was moved out, and the completer does not access it any more.
        self.rq.store(ptr::null_mut(), Release);
        entry
    }
}

/// Slots, which are found by tag, or by an identifier: the tag, and the generation of the entry in
/// the bits above.
pub(super) struct Slots<R, E> {
    slots: KVVec<Slot<R, E>>,
    /// The bits of an identifier that are the tag.
    tag_mask: u16,
}

// SAFETY: By the invariants of `Slot`, an entry is accessed by one thread at a time, and it is
// `Send`. The pointers are compared only.
unsafe impl<R, E: Send> Send for Slots<R, E> {}

// SAFETY: As above.
unsafe impl<R, E: Send> Sync for Slots<R, E> {}

impl<R, E> Slots<R, E> {
    /// The most slots: identifiers have at least two bits for the generation.
    pub(super) const MAX: u32 = 1 << 14;

    /// Allocates vacant slots, of which there are `1..=MAX`.
    pub(super) fn new(count: u32) -> Result<Self> {
        let mut slots = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
        for tag in 0..count {
            // INVARIANT: The slot is vacant.
            let slot = Slot {
                rq: Atomic::new(ptr::null_mut()),
                id: UnsafeCell::new(tag as u16),
                entry: Opaque::uninit(),
            };
            slots.push(slot, GFP_KERNEL)?;
        }
        Ok(Self {
            slots,
            tag_mask: (count.next_power_of_two() - 1) as u16,
        })
    }

    #[inline]
    fn get(&self, tag: u32) -> Option<&Slot<R, E>> {
        self.slots.get(tag as usize)
    }

    /// Returns the slot of a tag and its next identifier, if there is such a slot and it is vacant.
    ///
    /// # Safety
    ///
    /// The caller is the submitter.
    #[inline]
    pub(super) unsafe fn vacant(&self, tag: u32) -> Option<(&Slot<R, E>, u16)> {
        let slot = self.get(tag)?;
        if slot.is_full() {
            return None;
        }
        // SAFETY: By the safety requirement.
        let id = unsafe { slot.id() };
        // The generation wraps around. The tag stays.
        let id = id.wrapping_add(self.tag_mask).wrapping_add(1);
        Some((slot, id))
    }

    /// Moves out the entry that has this identifier.
    ///
    /// # Safety
    ///
    /// The caller is the completer.
    #[inline]
    pub(super) unsafe fn take(&self, id: u16) -> Option<E> {
        let slot = self.get(u32::from(id & self.tag_mask))?;
        if !slot.is_full() {
            return None;
        }
        // SAFETY: By the safety requirement, and the slot is full.
        if unsafe { slot.id() } != id {
            return None;
        }
        // SAFETY: As above.
        Some(unsafe { slot.empty() })
    }

    /// Moves out all entries that are found, in the order of their tags.
    ///
    /// # Safety
    ///
    /// The caller is the completer, and `f` does not take entries.
    pub(super) unsafe fn drain(&self, mut f: impl FnMut(E)) {
        for slot in &*self.slots {
            if slot.is_full() {
                // SAFETY: By the safety requirement, and the slot is full.
                f(unsafe { slot.empty() });
            }
        }
    }

    /// Returns whether the entry of `rq` is in the slot of `tag`.
    pub(super) fn contains(&self, tag: u32, rq: *const R) -> bool {
        let is_found = |slot: &Slot<R, E>| ptr::eq(slot.rq.load(Relaxed), rq);
        self.get(tag).is_some_and(is_found)
    }

    /// Returns the identifier of the entry of `rq`, if that is in the slot of `tag`.
    ///
    /// # Safety
    ///
    /// The caller is the submitter.
    pub(super) unsafe fn id_of(&self, tag: u32, rq: *const R) -> Option<u16> {
        let slot = self.get(tag).filter(|_| self.contains(tag, rq))?;
        // SAFETY: By the safety requirement.
        Some(unsafe { slot.id() })
    }

    /// Returns the number of full slots.
    pub(super) fn count_full(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_full()).count()
    }
}
