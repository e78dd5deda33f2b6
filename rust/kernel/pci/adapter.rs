// SPDX-License-Identifier: GPL-2.0

//! Drivers of PCI devices that are told of shutdowns, resets, errors.
//!
//! The kernel's own [`pci::Driver`](crate::pci::Driver) only knows of probe and unbind. A driver
//! whose device keeps data must stop it in order, and start it again after a reset that the driver
//! did not ask for.
//!
//! C header: [`include/linux/pci.h`](srctree/include/linux/pci.h)

use crate::{
    bindings,
    device::{
        Core,
        CoreInternal, //
    },
    device_id::RawDeviceIdIndex,
    dma::DmaMask,
    driver,
    error::{
        self,
        from_result,
        to_result, //
    },
    module::this_module,
    module_pin::ModulePin,
    owned_queue::OwnedQueue,
    pci::{
        bus_master,
        Device,
        DeviceId,
        IdTable, //
    },
    prelude::*,
    static_lock_class,
    sync::{
        aref,
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    types::Opaque,
    until_unbind::{
        Release,
        UntilUnbind, //
    },
    workqueue::{
        impl_has_work,
        Work,
        WorkItem, //
    },
    ThisModule, //
};
use core::marker::PhantomData;

pub mod function_reset;

/// How much of a device an error has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelState {
    /// It can be accessed.
    Normal,
    /// It cannot be accessed before it is reset.
    Frozen,
    /// It can never be accessed again.
    Dead,
}

/// What a driver needs to recover from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Recovery {
    /// Nothing; it does not take part.
    None = bindings::pci_ers_result_PCI_ERS_RESULT_NONE,
    /// Access to the device, without a reset.
    CanRecover = bindings::pci_ers_result_PCI_ERS_RESULT_CAN_RECOVER,
    /// A reset.
    NeedReset = bindings::pci_ers_result_PCI_ERS_RESULT_NEED_RESET,
    /// Nothing helps.
    Disconnect = bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT,
    /// Nothing more.
    Recovered = bindings::pci_ers_result_PCI_ERS_RESULT_RECOVERED,
}

/// A driver of PCI devices.
///
/// While the driver is bound, the memory of the device is enabled. Bus mastering is disabled after
/// [`Self::unbind`], before the data of the driver is dropped. It is also disabled after a
/// [`Self::probe`] that failed, but what that has made is dropped before; see
/// [`bus_master::clear`]. The device is disabled after all resources of the driver were released,
/// as that may take its interrupt line away.
///
/// The callbacks are never called at the same time for one device, nor before [`Self::probe`] or
/// after [`Self::unbind`]: C holds the lock of the device. It does not for errors that Xen reports
/// to a paravirtualized guest, so a driver is not told of any errors there.
///
/// To drop a [`driver::Registration`] takes the lock of each device that the driver is bound to. So
/// a driver must not do that in a callback, nor wait there for a task that does.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::Core,
///     pci::{self, adapter::{Driver, LockedWork}},
///     sync::Arc,
/// };
///
/// struct Example;
///
/// struct Data<'bound>(&'bound str);
///
/// kernel::pci_device_table!(TABLE, (), []);
///
/// #[vtable]
/// impl Driver for Example {
///     type IdInfo = ();
///     type Data<'bound> = Data<'bound>;
///     const ID_TABLE: pci::IdTable<()> = &TABLE;
///
///     fn probe<'bound>(
///         dev: &'bound pci::Device<Core<'_>>,
///         _info: Option<&'bound ()>,
///         _work: Arc<LockedWork<Self>>,
///     ) -> impl PinInit<Data<'bound>, Error> + 'bound {
///         dev.set_master();
///         Ok::<_, Error>(Data("example"))
///     }
///
///     fn shutdown<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Data<'bound>>) {
///         dev_info!(dev, "shutdown of {}\n", this.0);
///     }
/// }
/// ```
#[vtable]
pub trait Driver: Sized + 'static {
    /// What the table tells of a device.
    type IdInfo: 'static;

    /// The driver's data of a device. It exists as long as the driver is bound.
    type Data<'bound>: Send + 'bound;

    /// The devices that the driver is bound to. To others, it is only bound if a user asks for it
    /// with `driver_override`, so an empty table is a driver that is never bound unasked.
    const ID_TABLE: IdTable<Self::IdInfo>;

    /// The addresses that the device can access.
    const DMA_MASK: DmaMask = DmaMask::new::<32>();

    /// The bits of an address in memory that the device has to see in the address by which it
    /// accesses that memory. A device that is told of pages needs those of the offset in a page,
    /// also where the memory is copied for it.
    const DMA_MIN_ALIGN_MASK: u32 = 0;

    /// Takes over a device. There is no `info` if the table does not contain the device.
    fn probe<'bound>(
        dev: &'bound Device<Core<'_>>,
        info: Option<&'bound Self::IdInfo>,
        work: Arc<LockedWork<Self>>,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound;

    /// Stops the device before the data is dropped.
    fn unbind<'bound>(dev: &'bound Device<Core<'_>>, this: Pin<&Self::Data<'bound>>) {
        let _ = (dev, this);
    }

    /// Stops the device before the system is shut down. The data is not dropped after that.
    fn shutdown<'bound>(dev: &'bound Device<Core<'_>>, this: Pin<&Self::Data<'bound>>) {
        let _ = (dev, this);
        build_error!(error::VTABLE_DEFAULT_ERROR)
    }

    /// Stops the device before its function is reset, as a user may ask for.
    fn reset_prepare<'bound>(dev: &'bound Device<Core<'_>>, this: Pin<&Self::Data<'bound>>) {
        let _ = (dev, this);
        build_error!(error::VTABLE_DEFAULT_ERROR)
    }

    /// Starts the device after its function was reset.
    fn reset_done<'bound>(dev: &'bound Device<Core<'_>>, this: Pin<&Self::Data<'bound>>) {
        let _ = (dev, this);
        build_error!(error::VTABLE_DEFAULT_ERROR)
    }

    /// Does what a [`LockedWork`] was queued for.
    fn work<'bound>(dev: &'bound Device<Core<'_>>, this: Pin<&Self::Data<'bound>>) {
        let _ = (dev, this);
    }

    /// Is told of an error. A driver without this callback is not asked for any other of errors.
    fn error_detected<'bound>(
        dev: &'bound Device<Core<'_>>,
        this: Pin<&Self::Data<'bound>>,
        state: ChannelState,
    ) -> Recovery {
        let _ = (dev, this, state);
        build_error!(error::VTABLE_DEFAULT_ERROR)
    }

    /// Starts the device after it was reset because of an error.
    fn slot_reset<'bound>(
        dev: &'bound Device<Core<'_>>,
        this: Pin<&Self::Data<'bound>>,
    ) -> Recovery {
        let _ = (dev, this);
        build_error!(error::VTABLE_DEFAULT_ERROR)
    }

    /// Is told that all drivers have recovered from an error.
    fn resume<'bound>(dev: &'bound Device<Core<'_>>, this: Pin<&Self::Data<'bound>>) {
        let _ = (dev, this);
        build_error!(error::VTABLE_DEFAULT_ERROR)
    }
}

/// Asks for [`Driver::work`] for one device. [`Driver::probe`] gets it.
///
/// The work is done by a worker, which waits for the lock of the device. It is not done once the
/// driver was unbound, and the unbinding does not wait for it. So it may be asked for anywhere,
/// also where a task that holds the lock waits for the caller. Each device has a workqueue of its
/// own, so that there is a worker also while memory can be reclaimed only with the device, and
/// while the worker of another device waits for it.
///
/// # Examples
///
/// ```
/// use kernel::{
///     pci::adapter::{Driver, LockedWork},
///     sync::Arc,
/// };
///
/// /// Has a device reset by its driver, for example in a handler of timeouts.
/// fn reset<T: Driver>(work: &Arc<LockedWork<T>>) {
///     work.queue();
/// }
/// ```
///
/// # Invariants
///
/// While `is_bound` of the binding is true, and the lock of the device is held by a task that is
/// not in a callback of the driver, `T` is bound to `dev`.
#[pin_data]
pub struct LockedWork<T: Driver> {
    #[pin]
    work: Work<Self>,
    dev: aref::ARef<Device>,
    binding: UntilUnbind<Binding>,
    /// Last: keeps the module that contains the code of `T` until the worker is done.
    queue: OwnedQueue,
    _driver: PhantomData<fn(T)>,
}

/// Whether a driver is bound.
struct Binding {
    is_bound: Atomic<bool>,
}

impl Release for Binding {
    fn release(&self) {
        self.is_bound.store(false, Relaxed);
    }
}

/// The name of a lock class, which has a single address although the code that uses it is generic.
static WORK_NAME: &CStr = c"pci_locked_work";

impl_has_work! {
    impl{T: Driver} HasWork<Self> for LockedWork<T> { self.work }
}

impl<T: Driver> LockedWork<T> {
    /// Makes the work for a device.
    ///
    /// # Safety
    ///
    /// `T` must be about to be bound to `dev`.
    unsafe fn new(dev: &Device<Core<'_>>, name: &CStr) -> Result<Arc<Self>> {
        let binding = Arc::new(
            Binding {
                is_bound: Atomic::new(true),
            },
            GFP_KERNEL,
        )?;
        let binding = UntilUnbind::new(
            dev.as_ref(),
            binding,
            ModulePin::new(this_module::<T::OwnerModule>())?,
        )?;
        Arc::pin_init(
            // INVARIANT: By the safety requirement. C holds the lock until `T` is bound, or the
            // binding was released.
            try_pin_init!(Self {
                work <- Work::new(WORK_NAME, static_lock_class!()),
                dev: dev.into(),
                binding,
                queue: OwnedQueue::new(name, ModulePin::new(this_module::<T::OwnerModule>())?)?,
                _driver: PhantomData,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Has the work done once more, unless it is about to begin anyway. Never sleeps.
    pub fn queue(self: &Arc<Self>) {
        let _ = self.queue.enqueue(self.clone());
    }
}

impl<T: Driver> WorkItem for LockedWork<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let dev: &Device = &this.dev;
        let raw: *mut bindings::pci_dev = core::ptr::from_ref(dev).cast_mut().cast();
        // SAFETY: The device is valid.
        unsafe { bindings::pci_device_lock(raw) };
        if this.binding.resource().is_bound.load(Relaxed) {
            // SAFETY: The lock is held, and by the type invariant, the driver is bound.
            unsafe { Adapter::<T>::with_data(raw, |dev, data| T::work(dev, data)) };
        }
        // SAFETY: It was locked above.
        unsafe { bindings::pci_device_unlock(raw) };
    }
}

/// What C calls for a driver: the argument of [`driver::Registration`].
pub struct Adapter<T: Driver>(PhantomData<T>);

/// A driver as C knows it, with what belongs to it.
#[repr(C)]
pub struct Registered {
    driver: bindings::pci_driver,
    /// Keeps the module that C calls while the driver is registered.
    pin: Option<ModulePin>,
}

// Not derived: not every kernel has the function that makes a default `pci_driver`.
impl Default for Registered {
    fn default() -> Self {
        Self {
            driver: pin_init::zeroed(),
            pin: None,
        }
    }
}

// SAFETY:
// - `Registered` is laid out as a structure of C.
// - `T::Data` is what `probe_callback` stores as the data of the device.
// - The offset is that of the embedded `struct device_driver`.
unsafe impl<T: Driver> driver::DriverLayout for Adapter<T> {
    type DriverType = Registered;
    type DriverData<'bound> = T::Data<'bound>;
    const DEVICE_DRIVER_OFFSET: usize = core::mem::offset_of!(Registered, driver.driver);
}

// SAFETY: `unregister` may be called once after `register` succeeded.
unsafe impl<T: Driver> driver::RegistrationOps for Adapter<T> {
    unsafe fn register(
        reg: &Opaque<Self::DriverType>,
        name: &'static CStr,
        module: &'static ThisModule,
    ) -> Result {
        let pin = ModulePin::new(module)?;
        // SAFETY: The helper may be called anywhere.
        let errors_are_locked = unsafe { bindings::pci_errors_are_locked() };
        // SAFETY: The structure is being initialised, so nothing else accesses it.
        let registered = unsafe { &mut *reg.get() };
        registered.pin = Some(pin);
        let driver = &mut registered.driver;
        driver.name = name.as_char_ptr();
        driver.id_table = T::ID_TABLE.as_ptr();
        driver.probe = Some(Self::probe_callback);
        driver.remove = Some(Self::remove_callback);
        if T::HAS_SHUTDOWN {
            driver.shutdown = Some(Self::shutdown_callback);
        }
        driver.err_handler = if errors_are_locked {
            Self::ERROR_HANDLERS
        } else {
            Self::RESET_HANDLERS
        };
        // SAFETY: The structure is initialised, and remains until it is unregistered.
        let result = to_result(unsafe {
            bindings::__pci_register_driver(driver, module.as_ptr(), name.as_char_ptr())
        });
        if result.is_err() {
            // SAFETY: C does not know the structure.
            let registered = unsafe { &mut *reg.get() };
            registered.pin = None;
        }
        result
    }

    unsafe fn unregister(reg: &Opaque<Self::DriverType>) {
        // SAFETY: By the safety requirements, the structure is initialised.
        let driver = unsafe { &raw mut (*reg.get()).driver };
        // SAFETY: By the safety requirements, the driver is registered.
        unsafe { bindings::pci_unregister_driver(driver) };
        // SAFETY: C does not know the structure any more.
        let registered = unsafe { &mut *reg.get() };
        registered.pin = None;
    }
}

/// Disables a device, of which nothing is in use any more.
///
/// # Safety
///
/// `raw` must be a device that was enabled, and is disabled once.
unsafe extern "C" fn disable_device(raw: *mut c_void) {
    // SAFETY: By the safety requirements.
    unsafe { bindings::pci_disable_device(raw.cast()) };
}

/// A device in a callback of C, which holds its lock.
type Locked<'a, 'core> = &'a Device<CoreInternal<'core>>;

/// Returns a callback for C, if the driver has it.
const fn some_if<F: Copy>(has: bool, callback: F) -> Option<F> {
    if has {
        Some(callback)
    } else {
        None
    }
}

impl<T: Driver> Adapter<T> {
    const ERROR_HANDLERS: &'static bindings::pci_error_handlers = &bindings::pci_error_handlers {
        error_detected: some_if(T::HAS_ERROR_DETECTED, Self::error_detected_callback),
        mmio_enabled: None,
        slot_reset: some_if(T::HAS_SLOT_RESET, Self::slot_reset_callback),
        reset_prepare: some_if(T::HAS_RESET_PREPARE, Self::reset_prepare_callback),
        reset_done: some_if(T::HAS_RESET_DONE, Self::reset_done_callback),
        resume: some_if(T::HAS_RESUME, Self::resume_callback),
        cor_error_detected: None,
    };

    /// Those that C calls with the lock of the device held on every machine.
    const RESET_HANDLERS: &'static bindings::pci_error_handlers = &bindings::pci_error_handlers {
        error_detected: None,
        slot_reset: None,
        resume: None,
        ..*Self::ERROR_HANDLERS
    };

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is about to be bound, with
    /// the lock of the device held. `id` must be an entry of the table, or contain its data, or
    /// none.
    unsafe extern "C" fn probe_callback(
        raw: *mut bindings::pci_dev,
        id: *const bindings::pci_device_id,
    ) -> c_int {
        // SAFETY: By the safety requirements, the device is valid.
        let dev: Locked<'_, '_> = unsafe { &*raw.cast() };
        // SAFETY: The type is a transparent wrapper.
        let id = unsafe { &*id.cast::<DeviceId>() };
        // SAFETY: By the safety requirements. An identifier that a user adds has the data of an
        // entry. There is none where a user chose the driver.
        let info = unsafe { id.info_unchecked_opt::<T::IdInfo>() };
        // SAFETY: The device is valid.
        let device = unsafe { &raw mut (*raw).dev };
        from_result(|| {
            // SAFETY: The device is valid. It is not bound yet, so nothing else allocates memory
            // for it.
            to_result(unsafe { bindings::dma_set_mask_and_coherent(device, T::DMA_MASK.value()) })?;
            // SAFETY: As above.
            unsafe { bindings::pci_device_set_dma_limits(raw, T::DMA_MIN_ALIGN_MASK) };
            dev.enable_device_mem()?;
            // The first action, so it is performed last.
            //
            // SAFETY: The device is valid, and the pin keeps the function while the driver is
            // registered.
            let added = to_result(unsafe {
                bindings::devm_add_action(device, Some(disable_device), raw.cast())
            });
            if let Err(error) = added {
                // SAFETY: It was enabled above.
                unsafe { disable_device(raw.cast()) };
                return Err(error);
            }
            // SAFETY: By the safety requirements, the device is valid.
            let driver = unsafe { (*raw).driver };
            // SAFETY: C is about to bind this driver.
            let name = unsafe { (*driver).name };
            // SAFETY: `register` has set the name.
            let name = unsafe { CStr::from_char_ptr(name) };
            // SAFETY: By the safety requirements.
            let work = unsafe { LockedWork::new(dev, name) }?;
            if let Err(error) = dev.as_ref().set_drvdata(T::probe(dev, info, work)) {
                bus_master::clear(dev);
                return Err(error);
            }
            Ok(0)
        })
    }

    /// Calls `f` with a device and its data.
    ///
    /// # Safety
    ///
    /// `raw` must be a device to which this driver is bound, and C must hold its lock.
    unsafe fn with_data<R>(
        raw: *mut bindings::pci_dev,
        f: impl for<'bound, 'core> FnOnce(&'bound Device<Core<'core>>, Pin<&T::Data<'bound>>) -> R,
    ) -> R {
        // SAFETY: By the safety requirements.
        let dev: Locked<'_, '_> = unsafe { &*raw.cast() };
        // SAFETY: As the driver is bound, `probe_callback` has stored the data, which is dropped
        // when it was unbound.
        let data = unsafe { dev.as_ref().drvdata_borrow::<T::Data<'_>>() };
        f(dev, data)
    }

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is bound, with the lock of
    /// the device held.
    unsafe extern "C" fn remove_callback(raw: *mut bindings::pci_dev) {
        // SAFETY: By the safety requirements.
        unsafe {
            Self::with_data(raw, |dev, data| {
                T::unbind(dev, data);
                // The data is dropped after this. Its interrupts and registers are still there
                // then.
                bus_master::clear(dev);
            })
        }
    }

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is bound, with the lock of
    /// the device held.
    unsafe extern "C" fn shutdown_callback(raw: *mut bindings::pci_dev) {
        // SAFETY: By the safety requirements.
        unsafe { Self::with_data(raw, |dev, data| T::shutdown(dev, data)) }
    }

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is bound, with the lock of
    /// the device held.
    unsafe extern "C" fn reset_prepare_callback(raw: *mut bindings::pci_dev) {
        // SAFETY: By the safety requirements.
        unsafe { Self::with_data(raw, |dev, data| T::reset_prepare(dev, data)) }
    }

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is bound, with the lock of
    /// the device held.
    unsafe extern "C" fn reset_done_callback(raw: *mut bindings::pci_dev) {
        // SAFETY: By the safety requirements.
        unsafe { Self::with_data(raw, |dev, data| T::reset_done(dev, data)) }
    }

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is bound, with the lock of
    /// the device held.
    unsafe extern "C" fn error_detected_callback(
        raw: *mut bindings::pci_dev,
        state: bindings::pci_channel_state_t,
    ) -> bindings::pci_ers_result_t {
        let state = match state {
            bindings::pci_channel_io_normal => ChannelState::Normal,
            bindings::pci_channel_io_frozen => ChannelState::Frozen,
            _ => ChannelState::Dead,
        };
        // SAFETY: By the safety requirements.
        unsafe {
            Self::with_data(raw, |dev, data| {
                T::error_detected(dev, data, state) as bindings::pci_ers_result_t
            })
        }
    }

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is bound, with the lock of
    /// the device held.
    unsafe extern "C" fn slot_reset_callback(
        raw: *mut bindings::pci_dev,
    ) -> bindings::pci_ers_result_t {
        // SAFETY: By the safety requirements.
        unsafe {
            Self::with_data(raw, |dev, data| {
                T::slot_reset(dev, data) as bindings::pci_ers_result_t
            })
        }
    }

    /// # Safety
    ///
    /// For C only, which calls this for a device to which this driver is bound, with the lock of
    /// the device held.
    unsafe extern "C" fn resume_callback(raw: *mut bindings::pci_dev) {
        // SAFETY: By the safety requirements.
        unsafe { Self::with_data(raw, |dev, data| T::resume(dev, data)) }
    }
}
