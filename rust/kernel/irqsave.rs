// SPDX-License-Identifier: GPL-2.0

//! A spinlock that may be shared with interrupt handlers.
//!
//! Data that is also touched from an interrupt, such as a list of requests that a timer empties,
//! needs a lock that keeps interrupts off while it is held: otherwise the handler could spin for
//! ever on the lock of the very code that it interrupted. An [`IrqSpinLock`] saves the interrupt
//! flags when it is taken, which makes it usable where they are on as well as where they are off.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use crate::{
    bindings,
    prelude::*,
    sync::lock::{
        Backend,
        Guard,
        Lock, //
    }, //
};

/// Creates an initialiser of an [`IrqSpinLock`] with a lock class of its own.
///
/// The first argument is the initialiser of the data. The second, optional one is a string literal
/// that names the lock to lockdep; file and line stand in for it.
///
/// # Examples
///
/// ```
/// use kernel::irqsave::{new_irq_spinlock, IrqSpinLock};
///
/// #[pin_data]
/// struct Queue {
///     #[pin]
///     pending: IrqSpinLock<u32>,
/// }
///
/// let queue = KBox::pin_init(
///     pin_init!(Queue {
///         pending <- new_irq_spinlock!(3, "Queue::pending"),
///     }),
///     GFP_KERNEL,
/// )?;
/// *queue.pending.lock() -= 1;
/// assert_eq!(*queue.pending.lock(), 2);
/// # Ok::<(), Error>(())
/// ```
#[macro_export]
macro_rules! new_irq_spinlock {
    ($data:expr $(, $name:literal)? $(,)?) => {
        $crate::irqsave::IrqSpinLock::new(
            $data, $crate::optional_name!($($name)?), $crate::static_lock_class!())
    };
}
pub use new_irq_spinlock;

/// A spinlock that keeps interrupts off on this CPU while it is held.
///
/// The C type is [`spinlock_t`], taken by `spin_lock_irqsave` with the flags kept in the guard. An
/// instance is pinned and has a lock class: [`new_irq_spinlock!`] creates both. The code between
/// [`lock`] and the drop of the guard must not sleep.
///
/// # Guards nest
///
/// The guard that is dropped restores the flags *it* saw. When two of these locks are held, drop
/// their guards in the reverse order of taking them, as scopes do. Dropping the outer guard first
/// turns interrupts on again while the inner lock is still held: data stay protected, but a handler
/// that wants the inner lock then deadlocks on this CPU, or panics where there is no other. Leaking
/// a guard ([`core::mem::forget`])
/// leaves the lock held and interrupts off for good.
///
/// # Examples
///
/// ```
/// use kernel::irqsave::{new_irq_spinlock, IrqSpinLock};
///
/// // Usable from a timer and from a task alike.
/// fn count(events: &IrqSpinLock<u64>) -> u64 {
///     let mut events = events.lock();
///     *events += 1;
///     *events
/// }
///
/// let events = KBox::pin_init(new_irq_spinlock!(0u64), GFP_KERNEL)?;
/// assert_eq!(count(&events), 1);
/// assert_eq!(count(&events), 2);
///
/// let held = events.lock();
/// assert!(events.try_lock().is_none());
/// drop(held);
/// assert!(events.try_lock().is_some());
/// # Ok::<(), Error>(())
/// ```
///
/// [`lock`]: Lock::lock
/// [`spinlock_t`]: srctree/include/linux/spinlock_types.h
pub type IrqSpinLock<T> = Lock<T, IrqSaveBackend>;

/// What [`IrqSpinLock::lock`](Lock::lock) returns: access to the data until it is dropped.
///
/// # Examples
///
/// ```
/// use kernel::irqsave::{new_irq_spinlock, IrqSpinLockGuard};
///
/// fn take(mut credit: IrqSpinLockGuard<'_, u32>) -> bool {
///     let enough = *credit > 0;
///     *credit = credit.saturating_sub(1);
///     enough
/// }
///
/// let credit = KBox::pin_init(new_irq_spinlock!(1), GFP_KERNEL)?;
/// assert!(take(credit.lock()));
/// assert!(!take(credit.lock()));
/// # Ok::<(), Error>(())
/// ```
pub type IrqSpinLockGuard<'a, T> = Guard<'a, T, IrqSaveBackend>;

/// How an [`IrqSpinLock`] is taken and given back.
///
/// It is only named where code is generic over the kind of lock.
///
/// # Examples
///
/// ```
/// use kernel::{
///     irqsave::{new_irq_spinlock, IrqSaveBackend},
///     sync::lock::{Backend, Lock},
/// };
///
/// fn doubled<B: Backend>(lock: &Lock<u32, B>) -> u32 {
///     *lock.lock() * 2
/// }
///
/// let lock = KBox::pin_init(new_irq_spinlock!(21), GFP_KERNEL)?;
/// assert_eq!(doubled::<IrqSaveBackend>(&lock), 42);
/// # Ok::<(), Error>(())
/// ```
pub struct IrqSaveBackend;

/// A `spinlock_t`, and whether it is held where that does not know it.
// Public only since `Backend` is: nobody names it.
#[doc(hidden)]
#[repr(C)]
pub struct IrqSaveState {
    lock: bindings::spinlock_t,
    /// With one CPU, C's lock may do no more than disable interrupts. So if they are on although it
    /// is held, see "Guards nest", a handler could take it as well.
    #[cfg(not(CONFIG_SMP))]
    held: bool,
}

impl IrqSaveState {
    /// Takes note that C's lock was taken; returns whether nobody held it.
    ///
    /// # Safety
    ///
    /// `this` is initialised, and C's lock was taken just now.
    #[inline(always)]
    unsafe fn take(this: *mut Self) -> bool {
        #[cfg(CONFIG_SMP)]
        let held = {
            let _ = this;
            false
        };
        // SAFETY: By the safety requirement. C's lock was taken just now, so interrupts are off, or
        // it keeps everybody out by itself.
        #[cfg(not(CONFIG_SMP))]
        let held = unsafe { core::mem::replace(&mut (*this).held, true) };
        !held
    }
}

// SAFETY: A `spinlock_t` is held by one CPU at a time, whichever of its functions took it, and
// `held` stops the only CPU from holding it twice. `relock` is the provided one, which calls the
// same `lock`.
unsafe impl Backend for IrqSaveBackend {
    type State = IrqSaveState;
    /// The interrupt flags to be restored.
    type GuardState = c_ulong;

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller lets us write to `ptr` and keeps `name` and `key` for ever.
        unsafe {
            bindings::__spin_lock_init(&raw mut (*ptr).lock, name, key);
            #[cfg(not(CONFIG_SMP))]
            (&raw mut (*ptr).held).write(false);
        }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller has initialised the lock.
        let (flags, free) = unsafe {
            let flags = bindings::spin_lock_irqsave(&raw mut (*ptr).lock);
            (flags, IrqSaveState::take(ptr))
        };
        // On more CPUs, C would wait here for ever.
        assert!(free);
        flags
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: The caller has initialised the lock, and `flags` is ours to be written.
        let taken =
            unsafe { bindings::spin_trylock_irqsave(&raw mut (*ptr).lock, &mut flags) } != 0;
        if !taken {
            return None;
        }
        // SAFETY: C's lock was taken just now.
        if !unsafe { IrqSaveState::take(ptr) } {
            // SAFETY: As above; it stays with whoever has it.
            unsafe { bindings::spin_unlock_irqrestore(&raw mut (*ptr).lock, flags) };
            return None;
        }
        Some(flags)
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, flags: &Self::GuardState) {
        // SAFETY: The caller holds the lock, and `flags` is what taking it returned.
        unsafe {
            #[cfg(not(CONFIG_SMP))]
            (&raw mut (*ptr).held).write(false);
            bindings::spin_unlock_irqrestore(&raw mut (*ptr).lock, *flags);
        }
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: The caller has initialised the lock.
        unsafe { bindings::spin_assert_is_held(&raw mut (*ptr).lock) }
    }
}
