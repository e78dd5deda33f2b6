// SPDX-License-Identifier: GPL-2.0

//! Interrupt handlers that have their data to themselves.
//!
//! C never runs a handler twice at the same time for one interrupt. So a handler can have a mutable
//! reference to its data, without a lock: that is what an [`Exclusive`] is. Tasks get at the data
//! while the interrupt is disabled.
//!
//! On s390, all devices may share an interrupt that each CPU has for itself, so several CPUs run a
//! handler at the same time. This module does not exist there.
//!
//! C header: [`include/linux/interrupt.h`](srctree/include/linux/interrupt.h)

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    error::to_result,
    irq::IrqReturn,
    late_drop::check_may_sleep,
    module::this_module,
    module_pin::ModulePin,
    pci::{
        self,
        vectors::IrqVectors, //
    },
    prelude::*,
    static_lock_class,
    str::CString,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release as StoreRelease, //
        },
        rcu,
        Arc,
        Mutex, //
    },
    until_unbind::{
        Release,
        UntilUnbind, //
    },
};
use core::{
    cell::UnsafeCell,
    ptr::NonNull, //
};

/// A handler of an interrupt, with its data.
#[vtable]
pub trait Handler: Send + 'static {
    /// Handles an interrupt.
    ///
    /// This is called in interrupt context, or in the thread of the interrupt if the kernel was
    /// told to have those, and must not sleep. It is not called again before it returns. Where
    /// several devices share an interrupt line, the interrupt may be that of another device.
    ///
    /// The device is not known to be bound, as a handler that was leaked is removed while the
    /// driver's resources are released. With `guard`, registers can be accessed that are still
    /// there; see [`BoundBar`](crate::pci::bar::BoundBar).
    fn handle(&mut self, guard: &rcu::Guard) -> IrqReturn;
}

/// A registered handler `H`, which C calls until this is dropped, or the driver is unbound.
///
/// If this is dropped where the caller certainly cannot sleep, C calls the handler until the driver
/// is unbound.
///
/// # Locks
///
/// [`Self::with_masked`], and the drop, wait for the handler, and for the tasks that have it
/// masked. The drop and the unbinding of the driver wait for each other: the one that comes second
/// waits until the first has dropped the handler's data. So a task must not wait for a lock that
/// the handler, or a task that has it masked, holds while it waits for this task. Neither the drop
/// of the data nor a task that has the handler masked may wait for the unbinding. If the data of
/// one device's handler owns handlers of another device, the data of those must not own any of the
/// first device: the unbindings of both would wait for each other.
///
/// A task that has a handler masked must neither mask nor drop another one. All handlers have one
/// lock class, so lockdep reports that, and tasks that do it in opposite orders wait for each
/// other. Where I/O may wait for a task that masks the handler, such as one that resets a disk, no
/// task may wait for I/O while it has the handler masked. So memory is allocated in a NOIO scope
/// then.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::Core,
///     irq::{
///         exclusive::{Exclusive, Handler},
///         IrqReturn,
///     },
///     pci::{self, vectors::IrqVectors},
///     sync::{rcu, Arc},
/// };
///
/// struct Counter(u64);
///
/// #[vtable]
/// impl Handler for Counter {
///     fn handle(&mut self, _guard: &rcu::Guard) -> IrqReturn {
///         self.0 += 1;
///         IrqReturn::Handled
///     }
/// }
///
/// fn count(
///     dev: &pci::Device<Core<'_>>,
///     vectors: &Arc<IrqVectors>,
/// ) -> Result<Exclusive<Counter>> {
///     let counter = Exclusive::new(dev, vectors, 0, c"counter", Counter(0))?;
///     let so_far = counter.with_masked(|counter| counter.0)?;
///     dev_info!(dev, "{so_far} interrupts\n");
///     Ok(counter)
/// }
/// ```
pub struct Exclusive<H: Handler> {
    registration: UntilUnbind<Registration<H>>,
}

/// The name of a lock class, which has a single address although the code that uses it is generic.
static LOCK_NAME: &CStr = c"irq_exclusive";

/// What C knows of a handler.
///
/// # Invariants
///
/// While `is_registered` contains true, C calls [`Registration::handle`] for interrupt `number`
/// with a pointer to this. `handler` is accessed by that function while `is_masked` is false; else,
/// or when C does not call it any more, by the holder of the lock.
#[pin_data]
struct Registration<H: Handler> {
    number: u32,
    name: CString,
    /// While true, the handler does not touch its data. The interrupt is disabled then.
    ///
    /// That it is disabled is not enough: if an interrupt line was shut off because nothing handled
    /// its interrupts, a timer of C calls the handlers nevertheless. Nor would this be enough: a
    /// message that comes while the interrupt is enabled comes only once.
    is_masked: Atomic<bool>,
    /// The task that has the handler masked, or 0.
    owner: Atomic<usize>,
    #[pin]
    is_registered: Mutex<bool>,
    handler: UnsafeCell<Option<H>>,
    /// Not freed as long as there is a handler.
    _vectors: Arc<IrqVectors>,
}

// SAFETY: By the type invariant, the handler is accessed by one thread at a time, and it is `Send`.
unsafe impl<H: Handler> Sync for Registration<H> {}

// SAFETY: As above.
unsafe impl<H: Handler> Send for Registration<H> {}

impl<H: Handler> Exclusive<H> {
    /// Registers a handler for a vector, which is called from now on. May sleep.
    ///
    /// A vector may have several handlers, which are called one after the other for each interrupt.
    /// So a device that has fewer vectors than queues can still use all of these.
    ///
    /// `name` is shown in `/proc/interrupts`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such vector, if the vectors are those of another device, or if C
    /// cannot make a directory of that name in that of the interrupt: it has at most 127 bytes, and
    /// is not that of a file there, such as `spurious`. `ENODEV` if the vectors are those of an
    /// earlier binding; `EBUSY` if the vector has a handler that does not share it; `ENOMEM` if out
    /// of memory.
    ///
    /// The memory is allocated with `GFP_KERNEL`, for which the kernel may wait for I/O. Where I/O
    /// may wait for the caller, such as while a disk is being reset, this needs a NOIO scope.
    pub fn new(
        dev: &pci::Device<Bound>,
        vectors: &Arc<IrqVectors>,
        index: u32,
        name: &CStr,
        handler: H,
    ) -> Result<Self> {
        check_name(name)?;
        let number = vectors.number(dev, index)?;
        let dev: &device::Device<Bound> = dev.as_ref();
        let registration = Arc::pin_init(
            try_pin_init!(Registration {
                number,
                name: name.try_into()?,
                is_masked: Atomic::new(false),
                owner: Atomic::new(0),
                is_registered <- Mutex::new(true, LOCK_NAME, static_lock_class!()),
                handler: UnsafeCell::new(Some(handler)),
                _vectors: vectors.clone(),
            }? Error),
            GFP_KERNEL,
        )?;
        let pin = ModulePin::new(this_module::<H::OwnerModule>())?;
        let cookie = Arc::as_ptr(&registration);
        // SAFETY: The vectors are allocated as long as `dev` is bound and there is a reference to
        // them, which the registration has; the number is that of one of them. The name and the
        // registration exist until the handler is removed by `release`, and the pin keeps the
        // function until then.
        //
        // INVARIANT: If this fails, the registration is dropped with the handler, which C never
        // calls.
        to_result(unsafe {
            bindings::request_irq(
                number,
                Some(Registration::<H>::handle),
                bindings::IRQF_SHARED as c_ulong,
                registration.name.as_char_ptr(),
                cookie.cast_mut().cast(),
            )
        })?;
        Ok(Self {
            registration: UntilUnbind::new(dev, registration, pin)?,
        })
    }

    /// Calls `f` with the handler, while the interrupt is disabled. May sleep, and so may `f`.
    ///
    /// An interrupt that comes meanwhile is handled later. The other handlers of the vector have to
    /// wait as well, and if it is a line, so have other devices that share it.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the driver was unbound. `EDEADLK` in `f` itself, and where the caller certainly
    /// cannot sleep, such as in the handler.
    pub fn with_masked<R>(&self, f: impl FnOnce(&mut H) -> R) -> Result<R> {
        let this = &**self.registration.resource();
        check_may_sleep()?;
        let me = core::ptr::from_ref(&**current!()).addr();
        if this.owner.load(Relaxed) == me {
            return Err(EDEADLK);
        }
        let is_registered = this.is_registered.lock();
        if !*is_registered {
            return Err(ENODEV);
        }
        this.owner.store(me, Relaxed);
        // SAFETY: The interrupt exists as long as it has a handler. From now on, C records
        // messages, to send them again.
        unsafe { bindings::disable_irq(this.number) };
        // Not before: a handler that C calls for a message must handle it.
        this.is_masked.store(true, Relaxed);
        // SAFETY: The interrupt exists. This waits for a handler that a timer has called meanwhile.
        // If it is called after that, it finds that it is masked, since C takes a lock in between.
        unsafe { bindings::synchronize_irq(this.number) };
        // SAFETY: The handler is masked, so the holder of the lock may access it.
        let handler = unsafe { &mut *this.handler.get() };
        let result = handler.as_mut().map(f);
        this.is_masked.store(false, StoreRelease);
        // SAFETY: It was disabled above.
        unsafe { bindings::enable_irq(this.number) };
        this.owner.store(0, Relaxed);
        drop(is_registered);
        result.ok_or(ENODEV)
    }
}

/// Returns evidence that the RCU read side lock is held.
///
/// # Safety
///
/// The lifetime does not outlive a handler of an interrupt, in which the caller runs.
#[inline]
unsafe fn rcu_guard<'a>() -> &'a rcu::Guard {
    const_assert!(size_of::<rcu::Guard>() == 0);
    // RCU waits for code that runs with interrupts disabled, as handlers do. In a thread a handler
    // runs with bottom halves disabled, for which RCU waits, too.
    //
    // SAFETY: The type has no size, so any aligned pointer will do. By the safety requirement.
    unsafe { NonNull::<rcu::Guard>::dangling().as_ref() }
}

impl<H: Handler> Registration<H> {
    /// # Safety
    ///
    /// `cookie` must be a registration, which C calls this for.
    unsafe extern "C" fn handle(_irq: c_int, cookie: *mut c_void) -> bindings::irqreturn_t {
        // SAFETY: By the safety requirements.
        let this = unsafe { &*cookie.cast::<Self>() };
        let handled = if this.is_masked.load(Acquire) {
            IrqReturn::None
        } else {
            // SAFETY: By the type invariant, since the handler is not masked. C does not run this
            // twice at the same time: the interrupt is that of one device, not of each CPU.
            match unsafe { &mut *this.handler.get() } {
                // SAFETY: C calls this as the handler of an interrupt.
                Some(handler) => handler.handle(unsafe { rcu_guard() }),
                None => IrqReturn::None,
            }
        };
        bindings::irqreturn_t(handled as c_uint)
    }
}

impl<H: Handler> Release for Registration<H> {
    fn release(&self) {
        let mut is_registered = self.is_registered.lock();
        // SAFETY: By the type invariant, the handler is registered with this cookie. This waits
        // until it has returned, and C does not call it again.
        unsafe { bindings::free_irq(self.number, core::ptr::from_ref(self).cast_mut().cast()) };
        *is_registered = false;
        // SAFETY: C does not call the handler any more, and the lock is held.
        let handler = unsafe { (*self.handler.get()).take() };
        // The data may own other handlers, whose locks are of the same class.
        drop(is_registered);
        drop(handler);
    }
}

/// The files in the directory of an interrupt.
const FILES: [&CStr; 7] = [
    c"affinity_hint",
    c"effective_affinity",
    c"effective_affinity_list",
    c"node",
    c"smp_affinity",
    c"smp_affinity_list",
    c"spurious",
];

/// The most bytes of a name. C cuts the rest off, after it has compared whole names.
const MAX_NAME: usize = 127;

/// Fails unless C can make a directory of that name.
fn check_name(name: &CStr) -> Result {
    let bytes = name.to_bytes();
    let is_special = matches!(bytes, b"" | b"." | b"..") || FILES.contains(&name);
    if is_special || bytes.len() > MAX_NAME || bytes.contains(&b'/') {
        Err(EINVAL)
    } else {
        Ok(())
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
