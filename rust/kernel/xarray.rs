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
//! not. [`XArray::reserve`] takes the memory beforehand. [`VacantEntry::reserve`] does so, too, but
//! may not wait.
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
        ManuallyDrop,
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
/// xa.insert(1 << 40, RcuBox::new(3, GFP_KERNEL)?, GFP_KERNEL)?;
///
/// let guard = rcu::read_lock();
/// let seven = xa.load(&guard, 7);
/// drop(xa.remove(7));
/// // It is not freed before the end of the critical section.
/// assert_eq!(seven.copied(), Some(49));
/// assert_eq!(xa.load(&guard, 7), None);
/// assert_eq!(xa.find(&guard, 0..=usize::MAX), Some((1 << 40, &3)));
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
    /// kernel without sysfs.
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
        let (entry, _) = State::new(self, index).load_value();
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
    /// Returns the value at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T::Borrowed<'_>> {
        let (entry, _) = State::new(self.xa, index).load_value();
        // SAFETY: The lock is held, and removal needs `self`, which is borrowed.
        unsafe { XArray::<T, M>::borrow(entry) }
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
        let mut state = State::new(self.xa, index);
        let (entry, is_reserved) = state.load_value();
        // INVARIANT: The lock is held as long as the guard is borrowed. The entry is not null, and
        // from `into_foreign` by the invariants of `XArray`.
        match NonNull::new(entry) {
            Some(entry) => Entry::Occupied(OccupiedEntry {
                entry,
                _guard: self,
            }),
            None => Entry::Vacant(VacantEntry {
                state,
                is_reserved,
                _guard: self,
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
        let mut state = State::new(self.xa, index);
        let old = state.load();
        // SAFETY: The function may be called for any entry.
        if unsafe { bindings::xa_is_zero(old) } {
            return Err(StoreError {
                error: EBUSY,
                value,
            });
        }
        // SAFETY: The lock is held, nothing has changed since `state` was loaded, and the old entry
        // is taken care of below.
        unsafe { state.put(value) }?;
        // SAFETY: By the invariants of `XArray` the entry is null or from `into_foreign`, and it
        // was just replaced. The array, which has callbacks for `T`, exists during `'a`.
        Ok(NonNull::new(old).map(|old| unsafe { M::removed(old) }))
    }

    /// Removes the value at `index`, if there is one.
    #[inline]
    pub fn remove(&mut self, index: usize) -> Option<M::Removed<'a>> {
        let mut state = State::new(self.xa, index);
        let entry = NonNull::new(state.load())?;
        // SAFETY: The function may be called for any entry.
        if unsafe { bindings::xa_is_zero(entry.as_ptr()) } {
            return None;
        }
        // SAFETY: The lock is held by the type invariants. To remove an entry takes no memory.
        unsafe { state.store(ptr::null_mut()) };
        // SAFETY: By the invariants of `XArray` the entry is from `into_foreign`, and it was just
        // removed. The array, which has callbacks for `T`, exists during `'a`.
        Some(unsafe { M::removed(entry) })
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
/// `entry` is from `T::into_foreign`, and in the array as long as the guard is borrowed.
pub struct OccupiedEntry<'g, 'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    entry: NonNull<c_void>,
    _guard: &'g mut Guard<'a, T, M>,
}

impl<T: ForeignOwnable, M: Mode<T>> OccupiedEntry<'_, '_, T, M> {
    /// Returns the value.
    #[inline(always)]
    pub fn get(&self) -> T::Borrowed<'_> {
        // SAFETY: By the type invariants.
        unsafe { T::borrow(self.entry.as_ptr()) }
    }
}

/// A place without a value.
///
/// # Invariants
///
/// Nothing changes in the array as long as the guard is borrowed. `state` was loaded since. There
/// is no entry but, if `is_reserved`, that of a reservation.
pub struct VacantEntry<'g, 'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    state: State<'a>,
    is_reserved: bool,
    _guard: &'g mut Guard<'a, T, M>,
}

impl<'g, 'a, T: ForeignOwnable, M: Mode<T>> VacantEntry<'g, 'a, T, M> {
    /// Inserts a value, without waiting for memory.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is a reservation, `ENOMEM` if there is no memory at once. The value comes
    /// back.
    #[inline]
    pub fn insert(mut self, value: T) -> Result<(), StoreError<T>> {
        if self.is_reserved {
            return Err(StoreError {
                error: EBUSY,
                value,
            });
        }
        // SAFETY: By the type invariants.
        unsafe { self.state.put(value) }
    }

    /// Takes the memory that it takes to insert a value, without waiting for it. So a value can be
    /// made, or taken from elsewhere, once it is known that it can be inserted.
    ///
    /// # Errors
    ///
    /// [`EBUSY`] if there is a reservation, [`ENOMEM`] if there is no memory at once.
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
    /// // The value moves, or it stays where it is.
    /// let (mut from, mut to) = (from.lock(), to.lock());
    /// if let Entry::Vacant(place) = to.entry(5) {
    ///     let place = place.reserve()?;
    ///     if let Some(value) = from.remove(3) {
    ///         place.fill(value);
    ///     }
    /// }
    /// assert_eq!(from.get(3), None);
    /// assert_eq!(to.get(5), Some(&9));
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn reserve(mut self) -> Result<ReservedEntry<'g, 'a, T, M>> {
        if self.is_reserved {
            return Err(EBUSY);
        }
        // SAFETY: The function has no requirements.
        let zero = unsafe { bindings::xa_zero_entry() };
        // SAFETY: By the type invariants the lock is held, and there is no entry.
        to_result(unsafe { self.state.store(zero) })?;
        // INVARIANT: The entry was just stored, and nothing else changes.
        Ok(ReservedEntry {
            state: self.state,
            _guard: self._guard,
        })
    }
}

/// A place that a value can be inserted into without memory. Dropping it gives the memory back.
///
/// # Invariants
///
/// Nothing changes in the array as long as the guard is borrowed. `state` was loaded since. The
/// entry is `XA_ZERO_ENTRY`.
#[must_use = "dropping it gives the reservation back"]
pub struct ReservedEntry<'g, 'a, T: ForeignOwnable, M: Mode<T> = Rcu> {
    state: State<'a>,
    _guard: &'g mut Guard<'a, T, M>,
}

impl<T: ForeignOwnable, M: Mode<T>> ReservedEntry<'_, '_, T, M> {
    /// Inserts the value.
    #[inline]
    pub fn fill(self, value: T) {
        let mut this = ManuallyDrop::new(self);
        // By the type invariants there is an entry, so no memory is needed.
        // INVARIANT: (of `XArray`) The entry is from `into_foreign`.
        // SAFETY: The lock is held.
        unsafe { this.state.store(into_entry(value)) };
    }
}

impl<T: ForeignOwnable, M: Mode<T>> Drop for ReservedEntry<'_, '_, T, M> {
    fn drop(&mut self) {
        // SAFETY: The lock is held. By the type invariants no value is removed.
        unsafe { self.state.store(ptr::null_mut()) };
    }
}

impl<T: ForeignOwnable + Send + 'static> Guard<'_, T, Locked> {
    /// Returns the value at `index`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<T::BorrowedMut<'_>> {
        // SAFETY: The array is initialised by the invariants of `XArray`.
        let entry = NonNull::new(unsafe { bindings::xa_load(self.xa.xa.get(), index) })?;
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
        let mut state = State::new(self.xa, self.index);
        state.load();
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
///
/// # Invariants
///
/// `xa` is an initialised array that exists during `'a`, whose entries are from `T::into_foreign`
/// or reservations. During `'a`, the caller is in a read-side critical section, or holds the lock
/// and removes nothing. The `-left` slots before `slots_end` belong to a node that was found since,
/// and are for the indices before `end`.
// Two numbers change from one index to the next. No function that is not inlined gets the address
// of a cursor, so the compiler can keep them in registers.
pub struct Cursor<'a, T: ForeignOwnable> {
    left: isize,
    slots_end: *mut *mut c_void,
    end: usize,
    xa: *mut bindings::xarray,
    _values: PhantomData<&'a T>,
}

impl<'a, T: ForeignOwnable> Cursor<'a, T> {
    /// # Safety
    ///
    /// During `'a`, the caller must be in a read-side critical section, or hold the lock and remove
    /// nothing.
    #[inline]
    unsafe fn new<M: Mode<T>>(xa: &'a XArray<T, M>, index: usize) -> Self {
        // INVARIANT: By the safety requirements and the invariants of `XArray`. There is no slot.
        Self {
            left: 0,
            slots_end: ptr::null_mut(),
            end: index,
            xa: xa.xa.get(),
            _values: PhantomData,
        }
    }

    /// Returns the value at the index that the cursor was made for, then that at the next index,
    /// and so on. Beyond the last index, no value need be found.
    // It is no `Iterator`, which would end at the first index without a value.
    #[expect(clippy::should_implement_trait)]
    #[inline(always)]
    pub fn next(&mut self) -> Option<T::Borrowed<'a>> {
        let entry = if self.left == 0 {
            self.walk(self.end)
        } else {
            let slot = self.slots_end.wrapping_offset(self.left);
            // SAFETY: By the type invariants there is such a slot, whose node is freed no earlier
            // than its entries.
            let entry = unsafe { bindings::xa_slot_entry(slot) };
            // INVARIANT: There was a slot, which is the first.
            self.left = self.left.wrapping_add(1);
            // SAFETY: The function may be called for any entry.
            if unsafe { bindings::xa_is_special(entry) } {
                self.walk(self.end.wrapping_add_signed(self.left).wrapping_sub(1))
            } else {
                entry
            }
        };
        // SAFETY: By the type invariants the entry is from `into_foreign`, and not freed during
        // `'a`.
        unsafe { Self::borrow(entry) }
    }

    /// # Safety
    ///
    /// The entry must be null, or from `into_foreign` and not freed during `'a`.
    #[inline(always)]
    unsafe fn borrow(entry: *mut c_void) -> Option<T::Borrowed<'a>> {
        let entry = NonNull::new(entry)?;
        // SAFETY: By the safety requirements.
        Some(unsafe { T::borrow(entry.as_ptr()) })
    }

    /// Goes to an index from the root of the array. Returns the entry, or null if that is of a
    /// reservation.
    #[inline(always)]
    fn walk(&mut self, index: usize) -> *mut c_void {
        // SAFETY: By the type invariants.
        let found = unsafe { walk(self.xa, index) };
        // INVARIANT: These are the slots after that of `index`.
        self.left = (found.count as isize).wrapping_neg();
        self.slots_end = found.slots.wrapping_add(found.count);
        self.end = index.wrapping_add(1).wrapping_add(found.count);
        found.entry
    }
}

/// An entry, null if it is `XA_ZERO_ENTRY`, and the slots that follow it in the same node.
struct Found {
    entry: *mut c_void,
    slots: *mut *mut c_void,
    count: usize,
}

/// Looks an index up.
///
/// # Safety
///
/// `xa` must be an initialised array, which may be read.
#[inline(never)]
unsafe fn walk(xa: *mut bindings::xarray, index: usize) -> Found {
    // SAFETY: By the safety requirements.
    let mut state = unsafe { State::from_raw(xa, index) };
    let (entry, _) = state.load_value();
    let mut count = 0;
    // SAFETY: The state is initialised by the invariants of `State`.
    let slots = unsafe { bindings::xas_slots(&state.xas, &mut count) };
    Found {
        entry,
        slots,
        count,
    }
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
    #[inline(always)]
    fn new<T: ForeignOwnable, M: Mode<T>>(xa: &'a XArray<T, M>, index: usize) -> Self {
        // SAFETY: The array is initialised by the invariants of `XArray`.
        unsafe { Self::from_raw(xa.xa.get(), index) }
    }

    /// # Safety
    ///
    /// `xa` must be an initialised array that exists during `'a`.
    #[inline(always)]
    unsafe fn from_raw(xa: *mut bindings::xarray, index: usize) -> Self {
        let mut xas = MaybeUninit::uninit();
        // SAFETY: The memory is ours to be initialised.
        unsafe { bindings::xas_init(xas.as_mut_ptr(), xa, index) };
        // INVARIANT: It was just initialised.
        Self {
            // SAFETY: As above.
            xas: unsafe { xas.assume_init() },
            _xa: PhantomData,
        }
    }

    /// Returns the entry at the index, which may be `XA_ZERO_ENTRY`.
    ///
    /// The caller holds the lock or is in a read-side critical section. Otherwise C would complain,
    /// and the entry could not be used.
    #[inline(always)]
    fn load(&mut self) -> *mut c_void {
        loop {
            // SAFETY: The state is initialised by the type invariants.
            let entry = unsafe { bindings::xas_load(&mut self.xas) };
            // SAFETY: As above.
            if !unsafe { bindings::xas_retry_entry(&mut self.xas, entry) } {
                return entry;
            }
        }
    }

    /// Returns the entry at the index, or null and whether there is a reservation.
    #[inline(always)]
    fn load_value(&mut self) -> (*mut c_void, bool) {
        // SAFETY: The state is initialised by the type invariants.
        let entry = unsafe { bindings::xas_load(&mut self.xas) };
        // SAFETY: The function may be called for any entry.
        if unsafe { bindings::xa_is_special(entry) } {
            return self.load_special();
        }
        (entry, false)
    }

    /// The rest of [`Self::load_value`] for an entry that is not a value.
    #[cold]
    fn load_special(&mut self) -> (*mut c_void, bool) {
        let entry = self.load();
        // SAFETY: The function may be called for any entry.
        if unsafe { bindings::xa_is_zero(entry) } {
            (ptr::null_mut(), true)
        } else {
            (entry, false)
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
