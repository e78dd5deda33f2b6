// SPDX-License-Identifier: GPL-2.0

//! XArray: a sparse array of pointers, indexed by a word.
//!
//! Readers of an array in mode [`Rcu`] need no lock: what [`XArray::load`] finds stays valid for as
//! long as they are in an RCU read-side critical section. What is removed is freed after a grace
//! period, see [`rcu_free`](crate::sync::rcu_free). An array in mode [`Locked`] is used under its
//! lock only, so what is removed belongs to the caller at once.
//!
//! ```text
//!                     finds a value             changes the array
//!     XArray          load, cursor, find        insert, remove, reserve      (take the lock)
//!     Guard           get, cursor, find         insert, store, remove
//! ```
//!
//! To insert a value can take memory. [`XArray::insert`] may wait for it, [`Guard::insert`] may
//! not. [`XArray::reserve`] takes the memory beforehand. [`OccupiedEntry::move_to`] moves a value
//! to another array, or leaves it where it is.
//!
//! The functions of an [`XArray`] in the right column take its lock, as do those of a
//! [`Reservation`], which takes it also when it is dropped. A task that calls one of them while it
//! has the [`Guard`] of the array waits for itself forever. The lock is for tasks only: an
//! interrupt would wait for the task that it has interrupted. Interrupts may read an array in mode
//! [`Rcu`].
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)

use crate::{
    alloc::Flags,
    bindings,
    error::to_result,
    gfp,
    late_drop::may_wait,
    prelude::*,
    static_lock_class,
    sync::{
        rcu,
        rcu_free::{
            Callbacks,
            RcuFree,
            Removed, //
        },
        LockClassKey,
    },
    types::{
        ForeignOwnable,
        NotThreadSafe,
        Opaque, //
    },
};
use core::{
    marker::PhantomData,
    mem::{
        self,
        MaybeUninit, //
    },
    ops::RangeInclusive,
    ptr::{
        self,
        NonNull, //
    },
};

/// How many values are freed before other tasks may run.
const RESCHED_INTERVAL: usize = 1024;

mod private {
    pub trait Sealed {}
}

/// How an [`XArray`] of `T` is read: [`Rcu`] or [`Locked`].
///
/// # Safety
///
/// Values may be used by several threads at a time if [`Self::removed`] defers that they are freed.
pub unsafe trait Mode<T>: private::Sealed {
    /// A value that was removed.
    type Removed<'a>
    where
        T: 'a;

    /// Whether a callback of the kernel crate frees values.
    const HAS_CALLBACK: bool;

    /// Converts an entry that was removed.
    ///
    /// # Safety
    ///
    /// The entry must be from `T::into_foreign`, and was removed from an array that exists during
    /// `'a`, and that has a [`Callbacks`] if [`Self::HAS_CALLBACK`].
    #[doc(hidden)]
    unsafe fn removed<'a>(entry: NonNull<c_void>) -> Self::Removed<'a>
    where
        T: 'a;
}

/// The array is read by RCU readers, and under its lock.
pub enum Rcu {}

/// The array is read under its lock only.
///
/// # Examples
///
/// ```
/// use kernel::{static_lock_class, xarray::{Locked, XArray}};
///
/// let xa = XArray::<KBox<u8>, Locked>::new(c"example", static_lock_class!());
/// let xa = KBox::pin_init(xa, GFP_KERNEL)?;
/// xa.insert(3, KBox::new(9, GFP_KERNEL)?, GFP_KERNEL)?;
///
/// let mut guard = xa.lock();
/// if let Some(value) = guard.get_mut(3) {
///     *value = 10;
/// }
/// let removed: Option<KBox<u8>> = guard.remove(3);
/// assert_eq!(removed.as_deref(), Some(&10));
/// # Ok::<(), Error>(())
/// ```
pub enum Locked {}

impl private::Sealed for Rcu {}
impl private::Sealed for Locked {}

// SAFETY: `T` is `Send` and `Sync`.
unsafe impl<T: RcuFree> Mode<T> for Rcu {
    type Removed<'a>
        = Removed<'a, T>
    where
        T: 'a;

    const HAS_CALLBACK: bool = T::HAS_CALLBACK;

    #[inline]
    unsafe fn removed<'a>(entry: NonNull<c_void>) -> Removed<'a, T>
    where
        T: 'a,
    {
        // SAFETY: By the safety requirements.
        unsafe { Removed::new(entry) }
    }
}

// SAFETY: `T` is `Send`, and used by the thread that holds the lock only.
unsafe impl<T: ForeignOwnable + Send + 'static> Mode<T> for Locked {
    type Removed<'a>
        = T
    where
        T: 'a;

    const HAS_CALLBACK: bool = false;

    #[inline]
    unsafe fn removed<'a>(entry: NonNull<c_void>) -> T
    where
        T: 'a,
    {
        // SAFETY: By the safety requirements. Nothing borrows the value: it was borrowed from the
        // guard, which was borrowed mutably to remove it.
        unsafe { T::from_foreign(entry.as_ptr()) }
    }
}

/// Converts a value to an entry, which C can tell from its own.
///
/// It is the pointer of the value. But a `KBox` of a zero-sized type need not have the alignment
/// that it says it has. Such a box can have any address.
#[inline(always)]
fn into_entry<T: ForeignOwnable>(value: T) -> *mut c_void {
    value
        .into_foreign()
        .map_addr(|address| address.wrapping_add(3) & !3)
}

/// A sparse array of values.
///
/// It can be dropped in any context. That frees all values, which takes time in proportion to their
/// number.
///
/// # Invariants
///
/// `xa` is an initialised XArray. Its entries are `XA_ZERO_ENTRY`, for a [`Reservation`], or were
/// returned by `T::into_foreign`, and belong to the array. In mode [`Rcu`], an entry that is
/// removed is freed after a grace period, or when nothing borrows `self`. In mode [`Locked`],
/// entries are used only while the lock is held.
///
/// # Examples
///
/// ```
/// use kernel::{static_lock_class, sync::{rcu, rcu_box::RcuBox}, xarray::XArray};
///
/// let xa = KBox::pin_init(XArray::new(c"example", static_lock_class!()), GFP_KERNEL)?;
/// xa.insert(7, RcuBox::new(49, GFP_KERNEL)?, GFP_KERNEL)?;
/// xa.insert(1 << 30, RcuBox::new(3, GFP_KERNEL)?, GFP_KERNEL)?;
///
/// let guard = rcu::read_lock();
/// let seven = xa.load(&guard, 7);
/// drop(xa.remove(7));
/// // It is not freed before the end of the critical section.
/// assert_eq!(seven.copied(), Some(49));
/// assert_eq!(xa.load(&guard, 7), None);
/// assert_eq!(xa.find(&guard, 0..=usize::MAX), Some((1 << 30, &3)));
/// # Ok::<(), Error>(())
/// ```
#[pin_data(PinnedDrop)]
pub struct XArray<T: ForeignOwnable, M: Mode<T> = Rcu> {
    #[pin]
    xa: Opaque<bindings::xarray>,
    _callbacks: Callbacks,
    /// Not covariant: what is inserted as a `T` must be one when it is removed.
    _values: PhantomData<fn(T) -> T>,
    _mode: PhantomData<M>,
}

// SAFETY: The values may be dropped by any thread, since `T` is `Send` in both modes.
unsafe impl<T: ForeignOwnable, M: Mode<T>> Send for XArray<T, M> {}

// SAFETY: The array is changed under its lock. The values may be used as the mode allows it.
unsafe impl<T: ForeignOwnable, M: Mode<T>> Sync for XArray<T, M> {}

#[pinned_drop]
impl<T: ForeignOwnable, M: Mode<T>> PinnedDrop for XArray<T, M> {
    fn drop(self: Pin<&mut Self>) {
        let (xa, mut index, mut count) = (self.xa.get(), 0, 0);
        // SAFETY: The array is initialised by the type invariants.
        let mut entry =
            unsafe { bindings::xa_find(xa, &mut index, usize::MAX, bindings::XA_PRESENT) };
        while !entry.is_null() {
            // SAFETY: By the type invariants the entry is from `into_foreign`. The array is
            // destroyed without another look at it, and nothing borrows it, so no reader has it.
            drop(unsafe { T::from_foreign(entry) });
            count += 1;
            if count % RESCHED_INTERVAL == 0 && may_wait() {
                // SAFETY: The caller may sleep.
                unsafe { bindings::xas_cond_resched() };
            }
            // SAFETY: As above.
            entry = unsafe {
                bindings::xa_find_after(xa, &mut index, usize::MAX, bindings::XA_PRESENT)
            };
        }
        // SAFETY: As above, and the array is not used again.
        unsafe { destroy(xa) };
    }
}

/// Frees the nodes of an array.
///
/// # Safety
///
/// `xa` must be an initialised array that is not used any more.
// Not inlined, so that the name has one address, which lockdep requires.
#[inline(never)]
unsafe fn destroy(xa: *mut bindings::xarray) {
    let class = static_lock_class!();
    // C takes the lock to free the nodes. This is another one: an interrupt may drop an array, but
    // not take its lock; and a guard that was leaked still has that.
    // SAFETY: By the safety requirements the array exists.
    let lock = unsafe { &raw mut (*xa).xa_lock };
    let name = c"xarray::destroy".as_char_ptr();
    // SAFETY: By the safety requirements nothing uses the lock. The name and the class are static.
    unsafe { bindings::__spin_lock_init(lock, name, class.as_ptr()) };
    // SAFETY: By the safety requirements.
    unsafe { bindings::xa_destroy(xa) };
}

impl<T: ForeignOwnable, M: Mode<T>> XArray<T, M> {
    /// An entry must be a pointer that C can tell from its own entries.
    const ALIGNED: () = assert!(T::FOREIGN_ALIGN >= 4, "pointers must be aligned to 4 bytes");

    /// Creates an empty array, whose lock has this name and class.
    ///
    /// # Errors
    ///
    /// None in the kernel crate. In an external module, for values that a callback frees:
    /// [`ENOMEM`]; [`EAGAIN`] while the parameters of the module are being parsed; `ENOTSUPP` in a
    /// kernel without sysfs or Tasks RCU.
    pub fn new(
        name: &'static CStr,
        class: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        let () = Self::ALIGNED;
        let init = move |xa: *mut bindings::xarray| {
            // SAFETY: The memory is ours to be initialised.
            unsafe { bindings::xa_init_flags(xa, 0) };
            // SAFETY: As above.
            let lock = unsafe { &raw mut (*xa).xa_lock };
            // SAFETY: As above. The name and the class are static.
            unsafe { bindings::__spin_lock_init(lock, name.as_char_ptr(), class.as_ptr()) };
        };
        // INVARIANT: The array is initialised, and empty.
        try_pin_init!(Self {
            xa <- Opaque::ffi_init(init),
            _callbacks: Callbacks::new(M::HAS_CALLBACK)?,
            _values: PhantomData,
            _mode: PhantomData,
        }? Error)
    }

    /// Converts an entry, as the functions of the C API without an `xa_state` return it.
    ///
    /// # Safety
    ///
    /// The entry must be null, or one that is not freed during `'a`.
    #[inline]
    unsafe fn borrow<'a>(entry: *mut c_void) -> Option<T::Borrowed<'a>> {
        let entry = NonNull::new(entry)?;
        // SAFETY: By the safety requirements, and by the type invariants it is from `into_foreign`.
        Some(unsafe { T::borrow(entry.as_ptr()) })
    }

    /// Returns the first value in a range of indices, with its index.
    ///
    /// # Safety
    ///
    /// During `'a`, the caller must be in a read-side critical section, or hold the lock and remove
    /// nothing.
    unsafe fn find_entry<'a>(
        &self,
        range: RangeInclusive<usize>,
    ) -> Option<(usize, T::Borrowed<'a>)> {
        let (mut index, last) = range.into_inner();
        if index > last {
            return None;
        }
        // SAFETY: The array is initialised by the type invariants.
        let entry =
            unsafe { bindings::xa_find(self.xa.get(), &mut index, last, bindings::XA_PRESENT) };
        // SAFETY: By the safety requirements.
        Some((index, unsafe { Self::borrow(entry) }?))
    }

    /// Takes the lock of the array. Interrupts stay enabled, so it is for tasks only.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T, M> {
        // SAFETY: The array is initialised by the type invariants.
        unsafe { bindings::xa_lock(self.xa.get()) };
        // INVARIANT: The lock was just taken.
        Guard {
            xa: self,
            _not_send: NotThreadSafe,
        }
    }

    /// Takes the lock of the array, unless that would mean to wait.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, M>> {
        // SAFETY: The array is initialised by the type invariants.
        if unsafe { bindings::xa_trylock(self.xa.get()) } == 0 {
            return None;
        }
        // INVARIANT: The lock was just taken.
        Some(Guard {
            xa: self,
            _not_send: NotThreadSafe,
        })
    }

    /// Inserts a value: C's `xa_insert()`. It may sleep if `flags` allow it.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is a value or a reservation at `index`, `ENOMEM` if there is no memory.
    /// The value comes back.
    pub fn insert(&self, index: usize, value: T, flags: Flags) -> Result<(), StoreError<T>> {
        let entry = into_entry(value);
        // INVARIANT: The entry is from `into_foreign`, and belongs to the array if it was inserted.
        // SAFETY: The array is initialised by the type invariants.
        let error =
            unsafe { bindings::xa_insert(self.xa.get(), index, entry, gfp::slab_bits(flags)) };
        if error == 0 {
            return Ok(());
        }
        // SAFETY: The entry is from `into_foreign`, and was not inserted.
        Err(unsafe { StoreError::new(error, entry) })
    }

    /// Removes the value at `index`, if there is one.
    #[inline]
    pub fn remove(&self, index: usize) -> Option<M::Removed<'_>> {
        self.lock().remove(index)
    }

    /// Takes the memory that it takes to insert a value at `index`. It may sleep if `flags` allow
    /// it.
    ///
    /// Readers find nothing there until the reservation is filled, and insertions fail.
    ///
    /// # Errors
    ///
    /// [`EBUSY`] if there is a value or a reservation at `index`; [`ENOMEM`].
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{static_lock_class, sync::{new_spinlock, rcu, rcu_box::RcuBox}, xarray::XArray};
    ///
    /// let xa = KBox::pin_init(XArray::new(c"example", static_lock_class!()), GFP_KERNEL)?;
    /// let value = RcuBox::new(5, GFP_KERNEL)?;
    /// let place = xa.reserve(9, GFP_KERNEL)?;
    /// assert_eq!(xa.reserve(9, GFP_KERNEL).err(), Some(EBUSY));
    ///
    /// pin_init::stack_pin_init!(let lock = new_spinlock!(()));
    /// let guard = lock.lock();
    /// // No memory is needed here, where the task must not sleep.
    /// place.fill(value);
    /// drop(guard);
    /// assert_eq!(xa.load(&rcu::read_lock(), 9), Some(&5));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn reserve(&self, index: usize, flags: Flags) -> Result<Reservation<'_, T, M>> {
        let (xa, none) = (self.xa.get(), ptr::null_mut());
        // INVARIANT: C inserts `XA_ZERO_ENTRY` in place of null.
        // SAFETY: The array is initialised by the type invariants.
        to_result(unsafe { bindings::xa_insert(xa, index, none, gfp::slab_bits(flags)) })?;
        // INVARIANT: The entry was just inserted.
        Ok(Reservation { xa: self, index })
    }
}

impl<T: RcuFree> XArray<T> {
    /// Returns the value at `index`: C's `xa_load()`.
    #[inline]
    pub fn load<'a>(&'a self, _reader: &'a rcu::Guard, index: usize) -> Option<T::Borrowed<'a>> {
        // SAFETY: The array is initialised by the type invariants. The caller is in a read-side
        // critical section.
        let entry = unsafe { look_up(self.xa.get(), index) };
        // SAFETY: The entry was found in a read-side critical section that lasts during `'a`, while
        // `self` is borrowed.
        unsafe { Self::borrow(entry) }
    }

    /// Returns a cursor for the values from `index` on.
    #[inline]
    pub fn cursor<'a>(&'a self, _reader: &'a rcu::Guard, index: usize) -> Cursor<'a, T> {
        // SAFETY: The read-side critical section lasts during `'a`.
        unsafe { Cursor::new(self, index) }
    }

    /// Returns the first value in a range of indices, with its index: C's `xa_find()`.
    pub fn find<'a>(
        &'a self,
        _reader: &'a rcu::Guard,
        range: RangeInclusive<usize>,
    ) -> Option<(usize, T::Borrowed<'a>)> {
        // SAFETY: As in `Self::load`.
        unsafe { self.find_entry(range) }
    }
}

/// A value that was not stored, and the reason.
pub struct StoreError<T> {
    /// The reason.
    pub error: Error,
    /// The value.
    pub value: T,
}

impl<T: ForeignOwnable> StoreError<T> {
    /// # Safety
    ///
    /// `entry` must be from `T::into_foreign`, and belong to the caller, who gives it away.
    #[cold]
    unsafe fn new(error: c_int, entry: *mut c_void) -> Self {
        Self {
            error: Error::from_errno(error),
            // SAFETY: By the safety requirements.
            value: unsafe { T::from_foreign(entry) },
        }
    }
}

impl<T> From<StoreError<T>> for Error {
    #[inline]
    fn from(error: StoreError<T>) -> Self {
        error.error
    }
}

/// The lock of an [`XArray`], which is released when this is dropped.
///
/// # Invariants
///
/// The caller holds the lock.
///
/// # Examples
///
/// ```
/// use kernel::{static_lock_class, sync::rcu_box::RcuBox, xarray::{Rcu, XArray}};
///
/// let xa = XArray::<RcuBox<_>, Rcu>::new(c"example", static_lock_class!());
/// let xa = KBox::pin_init(xa, GFP_KERNEL)?;
/// let (one, two) = (RcuBox::new(1, GFP_KERNEL)?, RcuBox::new(2, GFP_KERNEL)?);
///
/// let mut guard = xa.lock();
/// // At index 0, no memory is needed.
/// guard.insert(0, one)?;
/// assert_eq!(guard.get(0), Some(&1));
/// let old = guard.store(0, two)?;
/// assert_eq!(old.map(|old| *old.borrow()), Some(1));
/// assert!(guard.remove(0).is_some());
/// assert!(guard.remove(0).is_none());
/// # Ok::<(), Error>(())
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    xa: &'a XArray<T, M>,
    _not_send: NotThreadSafe,
}

impl<T: ForeignOwnable, M: Mode<T>> Drop for Guard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The array is initialised, and by the type invariants the lock is held.
        unsafe { bindings::xa_unlock(self.xa.xa.get()) };
    }
}

impl<'a, T: ForeignOwnable, M: Mode<T>> Guard<'a, T, M> {
    /// Looks an index up.
    #[inline(always)]
    fn walk(&self, index: usize) -> Walk {
        // SAFETY: The array is initialised by the invariants of `XArray`, and the lock is held.
        let (entry, node) = unsafe { walk(self.xa.xa.get(), index) };
        let Some(value) = NonNull::new(entry) else {
            return Walk {
                value: None,
                is_reserved: false,
                node,
            };
        };
        // Only nodes that were removed have `XA_RETRY_ENTRY`, and those are found without the lock.
        // SAFETY: The function may be called for any entry.
        let is_reserved = unsafe { bindings::xa_is_special(entry) };
        Walk {
            value: (!is_reserved).then_some(value),
            is_reserved,
            node,
        }
    }

    /// Creates a state that has walked to `node`.
    ///
    /// # Safety
    ///
    /// [`Self::walk`] has found `node` for `index`, and nothing was changed since.
    #[inline(always)]
    unsafe fn state(&self, index: usize, node: *mut bindings::xa_node) -> State<'a> {
        // SAFETY: By the safety requirements. The lock is held, so the node is not freed.
        unsafe { State::new(self.xa, index, node) }
    }

    /// Returns the value at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T::Borrowed<'_>> {
        let entry = self.walk(index).value?;
        // SAFETY: The lock is held, and removal needs `self`, which is borrowed. By the invariants
        // of `XArray` the entry is from `into_foreign`.
        Some(unsafe { T::borrow(entry.as_ptr()) })
    }

    /// Returns a cursor for the values from `index` on.
    #[inline]
    pub fn cursor(&self, index: usize) -> Cursor<'_, T> {
        // SAFETY: The lock is held, and removal needs `self`, which is borrowed.
        unsafe { Cursor::new(self.xa, index) }
    }

    /// Returns the first value in a range of indices, with its index.
    pub fn find(&self, range: RangeInclusive<usize>) -> Option<(usize, T::Borrowed<'_>)> {
        // SAFETY: The lock is held, and removal needs `self`, which is borrowed.
        unsafe { self.xa.find_entry(range) }
    }

    /// Returns the place at `index`: with a value, or for a value. It is looked up once for both.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{static_lock_class, sync::rcu_box::RcuBox, xarray::{Entry, Rcu, XArray}};
    ///
    /// let xa = XArray::<RcuBox<_>, Rcu>::new(c"example", static_lock_class!());
    /// let xa = KBox::pin_init(xa, GFP_KERNEL)?;
    /// for expected in [None, Some(7)] {
    ///     match xa.lock().entry(0) {
    ///         Entry::Vacant(place) => place.insert(RcuBox::new(7, GFP_NOWAIT)?)?,
    ///         Entry::Occupied(place) => assert_eq!(expected, Some(*place.get())),
    ///     }
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    #[inline(always)]
    pub fn entry(&mut self, index: usize) -> Entry<'_, 'a, T, M> {
        let walk = self.walk(index);
        // INVARIANT: This is what the walk has found. The guard, which is borrowed, has the lock.
        // An entry that is not null is from `into_foreign` by the invariants of `XArray`.
        match walk.value {
            Some(entry) => Entry::Occupied(OccupiedEntry {
                index,
                entry,
                node: walk.node,
                guard: self,
            }),
            None => Entry::Vacant(VacantEntry {
                index,
                is_reserved: walk.is_reserved,
                node: walk.node,
                guard: self,
            }),
        }
    }

    /// Inserts a value, without waiting for memory.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is a value or a reservation at `index`, `ENOMEM` if there is no memory at
    /// once. The value comes back.
    #[inline]
    pub fn insert(&mut self, index: usize, value: T) -> Result<(), StoreError<T>> {
        match self.entry(index) {
            Entry::Vacant(place) => place.insert(value),
            Entry::Occupied(_) => Err(StoreError {
                error: EBUSY,
                value,
            }),
        }
    }

    /// Stores a value, without waiting for memory. Returns the one that was there.
    ///
    /// # Errors
    ///
    /// As for [`Self::insert`], but `EBUSY` only if there is a reservation.
    pub fn store(
        &mut self,
        index: usize,
        value: T,
    ) -> Result<Option<M::Removed<'a>>, StoreError<T>> {
        let walk = self.walk(index);
        let old = walk.value;
        if walk.is_reserved {
            return Err(StoreError {
                error: EBUSY,
                value,
            });
        }
        // SAFETY: Nothing has changed since the walk to this index.
        let mut state = unsafe { self.state(index, walk.node) };
        // SAFETY: The lock is held, and the old entry is taken care of below.
        unsafe { state.put(value) }?;
        // SAFETY: By the invariants of `XArray` the entry is null or from `into_foreign`, and it
        // was just replaced. The array, which has callbacks for `T`, exists during `'a`.
        Ok(old.map(|old| unsafe { M::removed(old) }))
    }

    /// Removes the value at `index`, if there is one.
    #[inline]
    pub fn remove(&mut self, index: usize) -> Option<M::Removed<'a>> {
        match self.entry(index) {
            Entry::Occupied(place) => Some(place.remove()),
            Entry::Vacant(_) => None,
        }
    }
}

/// A place in an [`XArray`] whose lock is held.
pub enum Entry<'g, 'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    /// There is a value.
    Occupied(OccupiedEntry<'g, 'a, T, M>),
    /// There is no value. There may be a reservation.
    Vacant(VacantEntry<'g, 'a, T, M>),
}

/// A place with a value.
///
/// # Invariants
///
/// Nothing changes in the array as long as the guard is borrowed. A walk to `index` since has found
/// `node` and `entry`, which is from `T::into_foreign`.
pub struct OccupiedEntry<'g, 'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    index: usize,
    entry: NonNull<c_void>,
    node: *mut bindings::xa_node,
    guard: &'g mut Guard<'a, T, M>,
}

impl<'a, T: ForeignOwnable, M: Mode<T>> OccupiedEntry<'_, 'a, T, M> {
    /// Returns the value.
    #[inline(always)]
    pub fn get(&self) -> T::Borrowed<'_> {
        // SAFETY: By the type invariants.
        unsafe { T::borrow(self.entry.as_ptr()) }
    }

    /// Removes the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{static_lock_class, xarray::{Entry, Locked, XArray}};
    ///
    /// let xa = XArray::<KBox<u8>, Locked>::new(c"example", static_lock_class!());
    /// let xa = KBox::pin_init(xa, GFP_KERNEL)?;
    /// xa.insert(3, KBox::new(9, GFP_KERNEL)?, GFP_KERNEL)?;
    ///
    /// let mut guard = xa.lock();
    /// if let Entry::Occupied(place) = guard.entry(3) {
    ///     assert_eq!(*place.remove(), 9);
    /// }
    /// assert!(guard.get(3).is_none());
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn remove(self) -> M::Removed<'a> {
        // SAFETY: By the type invariants the walk to the index has found the node.
        let mut state = unsafe { self.guard.state(self.index, self.node) };
        // SAFETY: By the type invariants the lock is held. To remove an entry takes no memory.
        unsafe { state.store(ptr::null_mut()) };
        // SAFETY: By the type invariants the entry is from `into_foreign`. It was just removed. The
        // array, which has callbacks for `T`, exists during `'a`.
        unsafe { M::removed(self.entry) }
    }
}

/// A place without a value.
///
/// # Invariants
///
/// Nothing changes in the array as long as the guard is borrowed. A walk to `index` since has found
/// `node`, and no entry but, if `is_reserved`, that of a reservation.
pub struct VacantEntry<'g, 'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    index: usize,
    is_reserved: bool,
    node: *mut bindings::xa_node,
    guard: &'g mut Guard<'a, T, M>,
}

impl<'g, 'a, T: ForeignOwnable, M: Mode<T>> VacantEntry<'g, 'a, T, M> {
    /// Inserts a value, without waiting for memory.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is a reservation, `ENOMEM` if there is no memory at once. The value comes
    /// back.
    #[inline]
    pub fn insert(self, value: T) -> Result<(), StoreError<T>> {
        if self.is_reserved {
            return Err(StoreError {
                error: EBUSY,
                value,
            });
        }
        // SAFETY: By the type invariants the walk to the index has found the node.
        let mut state = unsafe { self.guard.state(self.index, self.node) };
        // SAFETY: The lock is held by the type invariants, by which there is no entry.
        unsafe { state.put(value) }
    }
}

impl<T: ForeignOwnable + Send + 'static> OccupiedEntry<'_, '_, T, Locked> {
    /// Moves the value to a place in another array, without waiting for memory.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is a reservation, `ENOMEM` if there is no memory at once. The value stays
    /// where it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{static_lock_class, xarray::{Entry, Locked, XArray}};
    ///
    /// // Both locks are held at the same time, so each has a class of its own.
    /// let from = XArray::<KBox<u8>, Locked>::new(c"from", static_lock_class!());
    /// let to = XArray::<KBox<u8>, Locked>::new(c"to", static_lock_class!());
    /// let (from, to) = (KBox::pin_init(from, GFP_KERNEL)?, KBox::pin_init(to, GFP_KERNEL)?);
    /// from.insert(3, KBox::new(9, GFP_KERNEL)?, GFP_KERNEL)?;
    ///
    /// let (mut from, mut to) = (from.lock(), to.lock());
    /// if let (Entry::Occupied(value), Entry::Vacant(place)) = (from.entry(3), to.entry(5)) {
    ///     value.move_to(place)?;
    /// }
    /// assert_eq!(from.get(3), None);
    /// assert_eq!(to.get(5), Some(&9));
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn move_to<M: Mode<T>>(self, place: VacantEntry<'_, '_, T, M>) -> Result {
        if place.is_reserved {
            return Err(EBUSY);
        }
        // SAFETY: By the type invariants the walk to the index has found the node.
        let mut to = unsafe { place.guard.state(place.index, place.node) };
        // INVARIANT: (of `XArray`) The entry is from `into_foreign`. Until it is removed below,
        // both arrays have it. But what uses it in this one holds the lock, or borrows `self`.
        // SAFETY: By the type invariants the lock is held, and there is no entry.
        to_result(unsafe { to.store(self.entry.as_ptr()) })?;
        // SAFETY: By the type invariants the walk to the index has found the node.
        let mut from = unsafe { self.guard.state(self.index, self.node) };
        // To remove an entry takes no memory.
        // SAFETY: By the type invariants the lock is held. The entry belongs to the other array.
        unsafe { from.store(ptr::null_mut()) };
        Ok(())
    }
}

impl<T: ForeignOwnable + Send + 'static> Guard<'_, T, Locked> {
    /// Returns the value at `index`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<T::BorrowedMut<'_>> {
        let entry = self.walk(index).value?;
        // SAFETY: By the invariants of `XArray` the entry is from `into_foreign`, and it is used
        // only while the lock is held, by `self`, which is borrowed mutably.
        Some(unsafe { T::borrow_mut(entry.as_ptr()) })
    }
}

/// The memory that it takes to insert a value. Dropping it gives that back.
///
/// # Invariants
///
/// The entry at `index` is `XA_ZERO_ENTRY`, which only this replaces.
#[must_use = "dropping it gives the reservation back"]
pub struct Reservation<'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    xa: &'a XArray<T, M>,
    index: usize,
}

impl<T: ForeignOwnable, M: Mode<T>> Reservation<'_, T, M> {
    /// Returns the index.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Inserts the value.
    pub fn fill(self, value: T) {
        let guard = self.xa.lock();
        let node = guard.walk(self.index).node;
        // SAFETY: This is what the walk to the index has found.
        let mut state = unsafe { guard.state(self.index, node) };
        // By the type invariants there is an entry, so no memory is needed.
        // INVARIANT: (of `XArray`) The entry is from `into_foreign`.
        // SAFETY: The lock is held.
        unsafe { state.store(into_entry(value)) };
        drop(guard);
        mem::forget(self);
    }
}

impl<T: ForeignOwnable, M: Mode<T>> Drop for Reservation<'_, T, M> {
    fn drop(&mut self) {
        // SAFETY: The array is initialised by the invariants of `XArray`. The function removes the
        // entry if it is `XA_ZERO_ENTRY`.
        unsafe { bindings::xa_release(self.xa.xa.get(), self.index) };
    }
}

/// A position in an [`XArray`], from which it takes few instructions to get to the next index.
///
/// What other tasks insert after the cursor was made, it may miss.
///
/// # Examples
///
/// ```
/// use kernel::{static_lock_class, sync::{rcu, rcu_box::RcuBox}, xarray::XArray};
///
/// let xa = KBox::pin_init(XArray::new(c"example", static_lock_class!()), GFP_KERNEL)?;
/// for i in [62, 63, 65] {
///     xa.insert(i, RcuBox::new(i, GFP_KERNEL)?, GFP_KERNEL)?;
/// }
/// let guard = rcu::read_lock();
/// let mut cursor = xa.cursor(&guard, 62);
/// let found = [62, 63, 64, 65, 66].map(|_| cursor.next().copied());
/// assert_eq!(found, [Some(62), Some(63), None, Some(65), None]);
/// # Ok::<(), Error>(())
/// ```
pub struct Cursor<'a, T: ForeignOwnable> {
    run: Run<'a, T>,
}

impl<'a, T: ForeignOwnable> Cursor<'a, T> {
    /// # Safety
    ///
    /// During `'a`, the caller must be in a read-side critical section, or hold the lock and remove
    /// nothing.
    #[inline]
    unsafe fn new<M: Mode<T>>(xa: &'a XArray<T, M>, index: usize) -> Self {
        // INVARIANT: By the safety requirements and the invariants of `XArray`. There is no slot.
        let run = Run {
            slot: ptr::null_mut(),
            left: 0,
            end: index,
            xa: xa.xa.get(),
            _values: PhantomData,
        };
        Self { run }
    }

    /// Returns the value at the index that the cursor was made for, then that at the next index,
    /// and so on. Beyond the last index, no value need be found.
    // It is no `Iterator`, which would end at the first index without a value.
    #[expect(clippy::should_implement_trait)]
    #[inline(always)]
    pub fn next(&mut self) -> Option<T::Borrowed<'a>> {
        if self.run.left == 0 {
            self.run.walk();
        }
        self.run.next().flatten()
    }

    /// Returns the values at the next indices, as many as can be found together: at least one, at
    /// most `max`, which must not be 0. The cursor goes on behind them.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{static_lock_class, sync::{rcu, rcu_box::RcuBox}, xarray::XArray};
    ///
    /// let xa = KBox::pin_init(XArray::new(c"example", static_lock_class!()), GFP_KERNEL)?;
    /// for i in 0..100 {
    ///     xa.insert(i, RcuBox::new(i, GFP_KERNEL)?, GFP_KERNEL)?;
    /// }
    /// let guard = rcu::read_lock();
    /// let mut cursor = xa.cursor(&guard, 10);
    /// let (mut found, mut count) = (0, 0);
    /// while count < 90 {
    ///     let run = cursor.run(90 - count);
    ///     count += run.len();
    ///     found += run.flatten().count();
    /// }
    /// assert_eq!(found, 90);
    /// # Ok::<(), Error>(())
    /// ```
    #[inline(always)]
    pub fn run(&mut self, max: usize) -> Run<'a, T> {
        if self.run.left == 0 {
            self.run.walk();
        }
        self.run.split_off(max)
    }
}

/// The values at consecutive indices of an [`XArray`], from [`Cursor::run`].
///
/// # Invariants
///
/// `xa` is an initialised array that exists during `'a`, whose entries are from `T::into_foreign`
/// or reservations. During `'a`, the caller is in a read-side critical section, or holds the lock
/// and removes nothing. The `left` slots from `slot` on were found since, and are for the indices
/// before `end`.
// One number and one pointer change from one index to the next. No function that is not inlined
// gets the address of the struct, so the compiler can keep them in registers.
pub struct Run<'a, T: ForeignOwnable> {
    slot: *mut *mut c_void,
    left: usize,
    end: usize,
    xa: *mut bindings::xarray,
    _values: PhantomData<&'a T>,
}

impl<'a, T: ForeignOwnable> Run<'a, T> {
    /// Goes on at the slot of the next index, from the root of the array.
    #[inline(always)]
    fn walk(&mut self) {
        // SAFETY: By the type invariants.
        let (_, node) = unsafe { walk(self.xa, self.end) };
        // SAFETY: As above, and the walk has found the node.
        let slot = unsafe { bindings::xa_slots(self.xa, self.end, node, &mut self.left) };
        // INVARIANT: These are the slots of the indices from `end` on.
        self.slot = slot;
        self.end = self.end.wrapping_add(self.left);
    }

    /// Splits off the first `max` values, or all if there are fewer.
    #[inline(always)]
    fn split_off(&mut self, max: usize) -> Self {
        let count = self.left.min(max);
        // INVARIANT: These are the first slots.
        let first = Self {
            left: count,
            end: self.end.wrapping_sub(self.left - count),
            ..*self
        };
        // INVARIANT: These are the slots behind them.
        self.slot = self.slot.wrapping_add(count);
        self.left -= count;
        first
    }
}

impl<'a, T: ForeignOwnable> Iterator for Run<'a, T> {
    type Item = Option<T::Borrowed<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        // By the type invariants, `left` is the number of slots.
        self.left = self.left.checked_sub(1)?;
        // SAFETY: By the type invariants there is a slot, which is not freed during `'a`.
        let mut entry = unsafe { bindings::xa_slot_entry(self.slot) };
        // INVARIANT: There was a slot, which is the first.
        self.slot = self.slot.wrapping_add(1);
        // SAFETY: The function may be called for any entry.
        if unsafe { bindings::xa_is_special(entry) } {
            // SAFETY: By the type invariants.
            entry = unsafe { look_up_before(self.xa, self.end, self.left) };
        }
        // SAFETY: By the type invariants the entry is null, or from `into_foreign` and not freed
        // during `'a`.
        Some(NonNull::new(entry).map(|entry| unsafe { T::borrow(entry.as_ptr()) }))
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: ForeignOwnable> ExactSizeIterator for Run<'_, T> {}

/// What was found at an index: the value, or none and whether there is a reservation. The node is
/// that of an `xa_state`.
#[derive(Clone, Copy)]
struct Walk {
    value: Option<NonNull<c_void>>,
    is_reserved: bool,
    node: *mut bindings::xa_node,
}

/// Returns the value at an index, or null: C's `xa_load()`.
///
/// # Safety
///
/// As of [`walk`].
// Not inlined, since the callers need the registers. It does without the node.
#[inline(never)]
unsafe fn look_up(xa: *mut bindings::xarray, index: usize) -> *mut c_void {
    let mut node = ptr::null_mut();
    // SAFETY: As in `walk`.
    let entry = unsafe { bindings::xa_walk(xa, index, &mut node) };
    // SAFETY: The function may be called for any entry.
    if unsafe { bindings::xa_is_special(entry) } {
        // SAFETY: By the safety requirements.
        return unsafe { look_up_again(xa, index) };
    }
    entry
}

/// Returns the value at an index at which there was none, or null.
///
/// # Safety
///
/// As of [`walk`].
#[cold]
#[inline(never)]
unsafe fn look_up_again(xa: *mut bindings::xarray, index: usize) -> *mut c_void {
    loop {
        // SAFETY: By the safety requirements.
        let (entry, _) = unsafe { walk(xa, index) };
        // SAFETY: The function may be called for any entry.
        if unsafe { bindings::xa_is_zero(entry) } {
            return ptr::null_mut();
        }
        // Readers may have found a node that is not in the array any more.
        // SAFETY: As above.
        if !unsafe { bindings::xa_is_retry(entry) } {
            return entry;
        }
    }
}

/// Like [`look_up_again`], for the index that has `left` others between it and `end`.
///
/// # Safety
///
/// As of [`walk`].
// A loop that calculates the index does it for each slot.
#[cold]
#[inline(never)]
unsafe fn look_up_before(xa: *mut bindings::xarray, end: usize, left: usize) -> *mut c_void {
    // SAFETY: By the safety requirements.
    unsafe { look_up_again(xa, end.wrapping_sub(left).wrapping_sub(1)) }
}

/// Returns the entry at an index, and the node as in the `xa_node` of an `xa_state`: C's
/// `xas_load()`. The entry may be `XA_ZERO_ENTRY` or `XA_RETRY_ENTRY`.
///
/// # Safety
///
/// `xa` must be an initialised array. The caller must be in a read-side critical section, or hold
/// the lock.
// Not inlined, as C's is not, since the callers need the registers.
#[inline(never)]
unsafe fn walk(xa: *mut bindings::xarray, index: usize) -> (*mut c_void, *mut bindings::xa_node) {
    let mut node = ptr::null_mut();
    // SAFETY: By the safety requirements, and the invariants of `XArray`: its entries have one
    // index each.
    let entry = unsafe { bindings::xa_walk(xa, index, &mut node) };
    (entry, node)
}

/// The state of an operation: C's `xa_state`.
///
/// # Invariants
///
/// `xas` is initialised for an XArray that exists during `'a`, and has no memory of its own.
struct State<'a> {
    xas: bindings::xa_state,
    _xa: PhantomData<&'a ()>,
}

impl<'a> State<'a> {
    /// Creates a state that has walked to `node` on its way to an index.
    ///
    /// # Safety
    ///
    /// A walk to `index` has found `node`, and nothing was changed since, nor is before the state
    /// is used.
    #[inline(always)]
    unsafe fn new<T: ForeignOwnable, M: Mode<T>>(
        xa: &'a XArray<T, M>,
        index: usize,
        node: *mut bindings::xa_node,
    ) -> Self {
        let (xa, mut xas) = (xa.xa.get(), MaybeUninit::uninit());
        // SAFETY: The memory is ours to be initialised. The array is by the invariants of `XArray`.
        // By the safety requirements the node is one of it, or null or `XAS_BOUNDS`.
        unsafe { bindings::xas_init(xas.as_mut_ptr(), xa, index, node) };
        // INVARIANT: It was just initialised.
        Self {
            // SAFETY: As above.
            xas: unsafe { xas.assume_init() },
            _xa: PhantomData,
        }
    }

    /// Stores a value, without waiting for memory.
    ///
    /// # Safety
    ///
    /// The caller must hold the lock, nothing must have changed since the state was loaded, and the
    /// entry that was loaded must be null, or the caller takes it over.
    #[inline]
    unsafe fn put<T: ForeignOwnable>(&mut self, value: T) -> Result<(), StoreError<T>> {
        let entry = into_entry(value);
        // INVARIANT: (of `XArray`) The entry is from `into_foreign`.
        // SAFETY: By the safety requirements.
        let error = unsafe { self.store(entry) };
        if error == 0 {
            return Ok(());
        }
        // SAFETY: The entry is from `into_foreign`, and was not stored.
        Err(unsafe { StoreError::new(error, entry) })
    }

    /// Stores an entry at the index, without waiting for memory. Returns zero or an error number.
    ///
    /// # Safety
    ///
    /// The caller must hold the lock, and must see to what the entry was before. The entry must be
    /// null, `XA_ZERO_ENTRY`, or from `into_foreign`.
    #[inline(always)]
    unsafe fn store(&mut self, entry: *mut c_void) -> c_int {
        // SAFETY: The state is initialised by the type invariants, and the lock is held.
        unsafe { bindings::xas_store(&mut self.xas, entry) };
        // SAFETY: As above.
        unsafe { bindings::xas_error(&self.xas) }
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
