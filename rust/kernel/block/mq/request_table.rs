// SPDX-License-Identifier: GPL-2.0

//! The table of the requests that a device has, which it names by their identifiers.

use super::{
    Operations,
    Request,
    StartedRequest,
    TimedOutRequest, //
};
use crate::{
    prelude::*,
    sync::Arc, //
};
use core::ptr;
use slots::{
    Slot,
    Slots, //
};

mod slots;

/// An entry of a table: a started request, and what the driver needs when the device has done it.
pub trait InFlight: Send + 'static {
    /// The driver of the disk.
    type Driver: Operations;

    /// Returns the request.
    fn request(&self) -> &Request<Self::Driver>;
}

impl<T: Operations> InFlight for StartedRequest<T> {
    type Driver = T;

    #[inline]
    fn request(&self) -> &Request<T> {
        self
    }
}

/// The table of the requests that a device has.
pub struct RequestTable<E: InFlight> {
    slots: Slots<Request<E::Driver>, E>,
}

impl<E: InFlight> RequestTable<E> {
    /// The largest number of tags.
    pub const MAX_DEPTH: u32 = Slots::<Request<E::Driver>, E>::MAX;

    /// Creates a table for the tags below `depth`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `depth` is 0 or above [`Self::MAX_DEPTH`]; `ENOMEM` if out of memory.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(depth: u32) -> Result<(Submitter<E>, Completer<E>)> {
        if depth == 0 || depth > Self::MAX_DEPTH {
            return Err(EINVAL);
        }
        let slots = Slots::new(depth)?;
        let table = Arc::new(Self { slots }, GFP_KERNEL)?;
        // INVARIANT: The table is new.
        let submitter = Submitter {
            table: table.clone(),
        };
        // INVARIANT: As above.
        Ok((submitter, Completer { table }))
    }

    /// Returns whether a request that timed out is in the table, in the slot of its tag.
    pub fn contains(&self, rq: &TimedOutRequest<'_, E::Driver>) -> bool {
        self.id_of(rq).is_some()
    }

    /// Returns the identifier of a request that timed out, if [`Self::contains`] would return true.
    pub fn id_of(&self, rq: &TimedOutRequest<'_, E::Driver>) -> Option<u16> {
        self.slots
            .find(rq.tag(), Request::cast_from(rq.as_ptr()).cast_const())
    }
}

impl<E: InFlight> Drop for RequestTable<E> {
    fn drop(&mut self) {
        let count = self.slots.count_full();
        if count > 0 {
            pr_err!("{count} requests are leaked, since their table was dropped\n");
        }
    }
}

/// The half of a table that adds requests.
///
/// # Invariants
///
/// There is no other for this table.
pub struct Submitter<E: InFlight> {
    table: Arc<RequestTable<E>>,
}

impl<E: InFlight> Submitter<E> {
    /// Returns the table.
    #[inline]
    pub fn table(&self) -> &Arc<RequestTable<E>> {
        &self.table
    }

    /// Returns the entry of a tag, unless the tag is out of range or the entry is occupied.
    #[inline]
    pub fn vacant(&mut self, tag: u32) -> Option<VacantEntry<'_, E>> {
        let (slot, id) = self.table.slots.vacant(tag)?;
        // INVARIANT: By the type invariant nothing else fills it, and `self` is borrowed.
        Some(VacantEntry { slot, id })
    }
}

/// A vacant entry of a table.
///
/// # Invariants
///
/// The slot is vacant, and only this can fill it during `'a`.
pub struct VacantEntry<'a, E: InFlight> {
    slot: &'a Slot<Request<E::Driver>, E>,
    id: u16,
}

impl<E: InFlight> VacantEntry<'_, E> {
    /// Returns the identifier that a request inserted here has.
    #[inline]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Inserts a request.
    #[inline]
    pub fn insert(self, entry: E) {
        let rq = ptr::from_ref(entry.request()).cast_mut();
        // SAFETY: By the type invariant, as this is consumed. The pointer is that of a reference.
        unsafe { self.slot.fill(rq, self.id, entry) };
    }
}

/// The half of a table that removes requests.
///
/// # Invariants
///
/// There is no other for this table.
pub struct Completer<E: InFlight> {
    table: Arc<RequestTable<E>>,
}

impl<E: InFlight> Completer<E> {
    /// Returns the table.
    #[inline]
    pub fn table(&self) -> &Arc<RequestTable<E>> {
        &self.table
    }

    /// Removes and returns the request with this identifier, if there is one.
    #[inline]
    pub fn take(&mut self, id: u16) -> Option<E> {
        // SAFETY: By the type invariant, as this is borrowed exclusively.
        unsafe { self.table.slots.take(id) }
    }

    /// Removes all requests and calls `f` with each of them.
    pub fn drain(&mut self, f: impl FnMut(E)) {
        // SAFETY: By the type invariant, as this is borrowed exclusively, also while `f` runs.
        unsafe { self.table.slots.drain(f) };
    }
}
