// SPDX-License-Identifier: GPL-2.0

//! The table of the requests that a device has, which it names by their identifiers.
//!
//! A driver sends a device a command for each request, with an identifier that the device returns
//! when the command is done. The table owns the request in the meantime. What a device returns is
//! not trusted: an identifier that is out of range, one that is stale, or the second of two equal
//! ones finds nothing.
//!
//! An identifier is the tag of the request and a generation, which is another one for each
//! insertion into the same entry:
//!
//! ```text
//!      15            N  N-1             0
//!     +---------------+------------------+
//!     | generation    | tag              |      N: the bits that the largest tag needs
//!     +---------------+------------------+
//! ```
//!
//! The generation wraps around. So a device that returns the identifiers of commands that it has
//! long done can complete another request of the same tag, at most one for each that it returns.
//! That request is in the table: a device can always return wrong data.

use super::{
    MappedRequest,
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

/// An entry of a [`RequestTable`]: a started request, and what the driver needs with it until the
/// device has done it.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::mq::{InFlight, Operations, Request, StartedRequest},
///     prelude::*,
/// };
///
/// /// A request, and the memory that the device reads its command from.
/// struct Command<T: Operations> {
///     rq: StartedRequest<T>,
///     _memory: KBox<[u8; 64]>,
/// }
///
/// impl<T: Operations> InFlight for Command<T> {
///     type Driver = T;
///
///     fn request(&self) -> &Request<T> {
///         &self.rq
///     }
/// }
/// ```
pub trait InFlight: Send + 'static {
    /// The driver of the disk that the request belongs to.
    type Driver: Operations;

    /// Returns the request. The table only stores its address, for [`RequestTable::contains`].
    fn request(&self) -> &Request<Self::Driver>;
}

impl<T: Operations> InFlight for StartedRequest<T> {
    type Driver = T;

    #[inline]
    fn request(&self) -> &Request<T> {
        self
    }
}

impl<T: Operations> InFlight for MappedRequest<T> {
    type Driver = T;

    #[inline]
    fn request(&self) -> &Request<T> {
        self
    }
}

/// A table of the requests that a device has.
///
/// There is one for each queue of the device, with an entry for each tag. It has two halves. The
/// [`Submitter`] inserts requests: it belongs under the lock of the submission queue. The
/// [`Completer`] removes them: it belongs to the data that the interrupt handler has to itself.
/// Each half needs exclusive access, but the two are used at the same time. So there is no lock
/// between them, and no read-modify-write operation.
///
/// If the queues of a device share their tags, see [`TagSetOptions::shared_bitmap`], each may still
/// have a table of its own.
///
/// # Dropping the halves
///
/// The device may still access the memory of a request in the table. So dropping a half never ends
/// a request:
///
/// * Without the submitter, no request is inserted, and the completer removes what is there.
/// * Without the completer, requests are inserted, but never removed.
/// * When both halves and all references to the table are gone, the requests that are left are
///   leaked, which is logged. The removal of their disk then hangs.
///
/// So a driver stops the device, then calls [`Completer::drain`], then drops the completer. The
/// table may be freed when the last of these is dropped, where the caller should be able to sleep.
///
/// [`TagSetOptions::shared_bitmap`]: super::TagSetOptions::shared_bitmap
///
/// # Examples
///
/// A driver of a device that does each command at once. The completer is in a lock here, as there
/// is no interrupt.
///
/// ```
/// use kernel::{
///     block::{gendisk::GenDiskBuilder, mq::*, BlkStatus, Sectors},
///     prelude::*,
///     sync::{new_spinlock, static_lock_class, Arc, SpinLock},
/// };
///
/// const DEPTH: u32 = 32;
///
/// struct Driver;
///
/// type Command = StartedRequest<Driver>;
///
/// #[pin_data]
/// struct Queue {
///     table: Arc<RequestTable<Command>>,
///     #[pin]
///     submitter: SpinLock<Submitter<Command>>,
///     #[pin]
///     completer: SpinLock<Completer<Command>>,
/// }
///
/// impl Queue {
///     /// Handles a completion, with an identifier that the device returned.
///     fn complete(&self, id: u16) {
///         let rq = self.completer.lock().take(id);
///         match rq {
///             Some(rq) => rq.end(Ok(())),
///             None => pr_warn!("the device has returned the wrong identifier {id}\n"),
///         }
///     }
/// }
///
/// #[vtable]
/// impl Operations for Driver {
///     type Context = NonBlocking;
///     type TagSetData = ();
///     type QueueData = ();
///     type HwData = Queue;
///     type RequestData = ();
///     type Timer = NoTimer;
///
///     fn init_hw_queue(_: &(), _: &(), _index: u32) -> impl PinInit<Queue, Error> {
///         pin_init::pin_init_scope(|| {
///             let (submitter, completer) = RequestTable::new(DEPTH)?;
///             Ok(try_pin_init!(Queue {
///                 table: submitter.table().clone(),
///                 submitter <- new_spinlock!(submitter),
///                 completer <- new_spinlock!(completer),
///             }? Error))
///         })
///     }
///
///     fn init_request(_: &()) -> impl PinInit<()> {}
///
///     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
///         let queue = rq.hw_queue().data();
///         let mut submitter = queue.submitter.lock();
///         // No two requests in flight have the same tag.
///         let Some(entry) = submitter.vacant(rq.tag()) else {
///             return Err(rq.reject(BlkStatus::IOERR));
///         };
///         let id = entry.id();
///         // Here the command is written to the submission queue, with the identifier.
///         entry.insert(rq.start());
///         drop(submitter);
///         // Here the device is told of the command. It does it, and interrupts.
///         queue.complete(id);
///         Ok(())
///     }
///
///     fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
///         if rq.hw_queue().data().table.contains(&rq) {
///             pr_warn!("the device has had a request for too long\n");
///         }
///         rq.reset_timer()
///     }
/// }
///
/// let options = TagSetOptions { depth: DEPTH, ..TagSetOptions::default() };
/// let tags = TagSet::<Driver>::new(options, Ok(()))?;
/// let disk = GenDiskBuilder::new(tags, static_lock_class!())
///     .capacity(Sectors::from_mebibytes(1))
///     .build(c"rust_table_doc", Ok(()))?
///     .add()?;
/// # drop(disk);
/// # Ok::<(), Error>(())
/// ```
pub struct RequestTable<E: InFlight> {
    slots: Slots<Request<E::Driver>, E>,
}

impl<E: InFlight> RequestTable<E> {
    /// The largest depth, which leaves two bits of an identifier for the generation.
    pub const MAX_DEPTH: u32 = Slots::<Request<E::Driver>, E>::MAX;

    /// Creates an empty table for the tags below `depth`. May sleep.
    ///
    /// The requests in it never have an identifier whose part for the tag is `depth` or larger. So
    /// a driver can use those for other commands, if `depth` is no power of two.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `depth` is 0 or larger than [`Self::MAX_DEPTH`]; `ENOMEM` if out of memory.
    ///
    /// The memory is allocated with `GFP_KERNEL`, for which the kernel may wait for I/O. Where I/O
    /// may wait for the caller, such as while a disk is being reset, this needs a NOIO scope.
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

    /// Returns whether a request that timed out is in the table, in the entry of its tag.
    ///
    /// This accesses neither the request nor the entry, so the halves may be in use. The result may
    /// be stale when it is returned:
    ///
    /// * If it is false, the completer has removed the request since it timed out, or the request
    ///   was not in this table. Its timeout can be restarted: it is about to end, or to be sent
    ///   again.
    /// * If it is true, the request was in the table during the call. It may have been removed
    ///   since, or it was removed before, requeued, and inserted again. So a driver should do
    ///   nothing then that would be wrong for a request that the device has done.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::block::mq::{InFlight, RequestTable, TimedOutRequest, TimeoutAction};
    ///
    /// fn timeout<'t, E: InFlight>(
    ///     table: &RequestTable<E>,
    ///     rq: TimedOutRequest<'t, E::Driver>,
    ///     poll: impl FnOnce(),
    ///     schedule_reset: impl FnOnce(),
    /// ) -> TimeoutAction<'t> {
    ///     // An interrupt may be lost.
    ///     poll();
    ///     if table.contains(&rq) {
    ///         schedule_reset();
    ///     }
    ///     rq.reset_timer()
    /// }
    /// ```
    pub fn contains(&self, rq: &TimedOutRequest<'_, E::Driver>) -> bool {
        self.slots.contains(rq.tag(), rq.as_request())
    }

    /// Returns how many requests are in the table. The halves may be in use, so the result may be
    /// stale when it is returned.
    ///
    /// A driver that has [quiesced](super::TagSet::quiesce) its tag set can wait until this is zero
    /// before it stops its device.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::mq::{InFlight, RequestTable},
    ///     time::{delay::fsleep, Delta},
    /// };
    ///
    /// /// Gives a device up to a second for the requests that it has.
    /// fn wait_for_device<E: InFlight>(table: &RequestTable<E>) -> bool {
    ///     for _ in 0..1000 {
    ///         if table.count() == 0 {
    ///             return true;
    ///         }
    ///         fsleep(Delta::from_millis(1));
    ///     }
    ///     false
    /// }
    /// ```
    pub fn count(&self) -> usize {
        self.slots.count_full()
    }
}

impl<E: InFlight> Drop for RequestTable<E> {
    fn drop(&mut self) {
        let count = self.count();
        if count > 0 {
            pr_err!("{count} requests are leaked: the device has them, but their table is gone\n");
        }
    }
}

/// The half of a [`RequestTable`] that inserts requests.
///
/// It belongs under the lock of the submission queue.
///
/// # Invariants
///
/// The table has no other submitter.
pub struct Submitter<E: InFlight> {
    table: Arc<RequestTable<E>>,
}

impl<E: InFlight> Submitter<E> {
    /// Returns the table, for [`RequestTable::contains`].
    #[inline]
    pub fn table(&self) -> &Arc<RequestTable<E>> {
        &self.table
    }

    /// Returns the identifier of a request that timed out, or [`None`] where
    /// [`RequestTable::contains`] returns false. It is for a command that aborts that of the
    /// request.
    ///
    /// The completer may have removed the request when this returns.
    pub fn id_of(&self, rq: &TimedOutRequest<'_, E::Driver>) -> Option<u16> {
        // SAFETY: By the type invariant this is the only submitter. It is borrowed, so nothing
        // fills a slot.
        unsafe { self.table.slots.id_of(rq.tag(), rq.as_request()) }
    }

    /// Returns the entry of a tag, or [`None`] if the tag is out of range, or if there is a request
    /// in its entry.
    ///
    /// If each request of a queue is inserted with its own [`Request::tag`], the entry is vacant: a
    /// tag is reused after its request has ended, hence after it was removed.
    #[inline]
    pub fn vacant(&mut self, tag: u32) -> Option<VacantEntry<'_, E>> {
        // SAFETY: By the type invariant this is the only submitter, and it is borrowed exclusively.
        let (slot, id) = unsafe { self.table.slots.vacant(tag) }?;
        // INVARIANT: The slot is vacant. By the type invariant nothing else fills it as long as
        // `self` is borrowed exclusively.
        Some(VacantEntry { slot, id })
    }
}

/// A vacant entry of a [`RequestTable`], in which a request can be inserted.
///
/// # Examples
///
/// ```
/// use kernel::block::{
///     mq::{Operations, StartedRequest, Submitter},
///     BlkStatus, //
/// };
///
/// fn submit<T: Operations>(
///     submitter: &mut Submitter<StartedRequest<T>>,
///     rq: StartedRequest<T>,
///     write_command: impl FnOnce(u16),
///     notify: impl FnOnce(),
/// ) {
///     match submitter.vacant(rq.tag()) {
///         Some(entry) => {
///             write_command(entry.id());
///             entry.insert(rq);
///             notify();
///         }
///         None => rq.end(Err(BlkStatus::IOERR)),
///     }
/// }
/// ```
///
/// # Invariants
///
/// During `'a`, the slot is vacant unless this fills it. Nothing else does.
#[must_use = "the request that is to be sent is inserted into it"]
pub struct VacantEntry<'a, E: InFlight> {
    slot: &'a Slot<Request<E::Driver>, E>,
    id: u16,
}

impl<E: InFlight> VacantEntry<'_, E> {
    /// Returns the identifier of a request that is inserted into this.
    #[inline]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Inserts a request.
    ///
    /// From now on, another CPU may remove and end it. So this comes after all accesses to the
    /// request, and before the device is told of the command.
    #[inline]
    pub fn insert(self, entry: E) {
        let rq = ptr::from_ref(entry.request()).cast_mut();
        // SAFETY: By the type invariant the slot is vacant, and only this, which is consumed, fills
        // it. A reference is not null.
        unsafe { self.slot.fill(rq, self.id, entry) };
    }
}

/// The half of a [`RequestTable`] that removes requests.
///
/// It belongs to the data of the interrupt handler, but may be moved out of it, and back, such as
/// while a device is being reset.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{Completer, Operations, StartedRequest};
///
/// /// Returns whether the device has sent an identifier of a request that it has.
/// fn complete<T: Operations>(completer: &mut Completer<StartedRequest<T>>, id: u16) -> bool {
///     completer.take(id).map(|rq| rq.end(Ok(()))).is_some()
/// }
///
/// /// Sends all requests again after the device was stopped, to be done when it was reset.
/// fn requeue_all<T: Operations>(completer: &mut Completer<StartedRequest<T>>) {
///     completer.drain(|rq| rq.requeue());
/// }
/// ```
///
/// # Invariants
///
/// The table has no other completer.
pub struct Completer<E: InFlight> {
    table: Arc<RequestTable<E>>,
}

impl<E: InFlight> Completer<E> {
    /// Returns the table, for [`RequestTable::contains`].
    #[inline]
    pub fn table(&self) -> &Arc<RequestTable<E>> {
        &self.table
    }

    /// Removes and returns the request with an identifier, or returns [`None`] if there is none:
    /// the tag in it is out of range, its entry is vacant, or the entry has another generation.
    #[inline]
    pub fn take(&mut self, id: u16) -> Option<E> {
        // SAFETY: By the type invariant this is the only completer, and it is borrowed exclusively.
        unsafe { self.table.slots.take(id) }
    }

    /// Removes all requests, and calls `f` with each.
    ///
    /// The device must not access their memory any more. A request that is inserted meanwhile may
    /// stay.
    pub fn drain(&mut self, f: impl FnMut(E)) {
        // SAFETY: By the type invariant this is the only completer, and it is borrowed exclusively,
        // also while `f` runs.
        unsafe { self.table.slots.drain(f) };
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
