// SPDX-License-Identifier: GPL-2.0

//! Registers of a device, which cannot be accessed once its driver is unbound.
//!
//! C header: [`include/linux/pci.h`](srctree/include/linux/pci.h)

use crate::{
    bindings,
    device::Bound,
    io::{
        Io,
        IoBackend,
        IoBase,
        MmioBackend, //
    },
    module_pin::ModulePin,
    pci::{
        Bar,
        Device, //
    },
    prelude::*,
    revocable::Revocable,
    str::CString,
    sync::{
        rcu,
        Arc, //
    },
    until_unbind::{
        Release,
        UntilUnbind, //
    },
};

/// A BAR, mapped until the driver is unbound, or the last reference is dropped.
///
/// Unlike [`DevresBar`](crate::pci::DevresBar), it can be accessed in an RCU read-side critical
/// section that exists already. That the device is bound is no reason to access it: a BAR may have
/// been kept since an earlier binding. Where the caller certainly cannot sleep when it drops the
/// last reference, the BAR remains mapped until the driver is unbound. It must not be dropped under
/// a guard of RCU or a spinlock: not every kernel can tell that the caller cannot sleep there.
pub struct BoundBar {
    mapping: UntilUnbind<Mapping>,
    len: usize,
}

/// # Invariants
///
/// The lifetime of the [`Bar`] is only formally `'static`: no reference with that lifetime is given
/// out. The BAR is revoked when the driver is unbound at the latest.
#[pin_data]
struct Mapping {
    #[pin]
    bar: Revocable<NamedBar>,
}

/// A BAR with the name that C shows in `/proc/iomem`.
struct NamedBar {
    bar: Bar<'static>,
    /// After the BAR: C has a pointer to it until that is released.
    _name: CString,
}

impl Release for Mapping {
    fn release(&self) {
        self.bar.revoke();
    }
}

impl BoundBar {
    /// Maps the whole of BAR `index`, which must be memory. May sleep.
    ///
    /// `name` is shown in `/proc/iomem`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such BAR, if it consists of I/O ports, or has no address; `EBUSY` if
    /// it is in use; `ENOMEM` if it is empty, or cannot be mapped.
    ///
    /// The memory is allocated with `GFP_KERNEL`, for which the kernel may wait for I/O. Where I/O
    /// may wait for the caller, such as while a disk is being reset, this needs a NOIO scope.
    pub fn map(dev: &Device<Bound>, index: u32, name: &CStr) -> Result<Arc<Self>> {
        // The others are the ROM, or windows of bridges.
        if index > 5 {
            return Err(EINVAL);
        }
        // SAFETY: The device is valid, and has at least six resources.
        if !is_memory(unsafe { bindings::pci_bar_flags(raw(dev), index) }) {
            return Err(EINVAL);
        }
        let pin = ModulePin::of_this_code()?;
        let name = CString::try_from(name)?;
        // SAFETY: The string is not in `name` itself, and never mutated. It is freed after the BAR
        // is released, and nothing uses the reference after that.
        let shown: &'static CStr = unsafe { CStr::from_char_ptr(name.as_char_ptr()) };
        let bar = dev.iomap_region(index, shown)?;
        let len = (&bar).size();
        // SAFETY: The types differ in a lifetime only. The device and the mapping remain valid
        // until the driver is unbound, when the value is dropped at the latest.
        let bar = unsafe { core::mem::transmute::<Bar<'_>, Bar<'static>>(bar) };
        let bar = NamedBar { bar, _name: name };
        let mapping = Arc::pin_init(
            // INVARIANT: The `Bar` was just made private, and is revoked by `release`.
            pin_init!(Mapping {
                bar <- Revocable::new(bar),
            }),
            GFP_KERNEL,
        )?;
        let mapping = UntilUnbind::new(dev.as_ref(), mapping, pin)?;
        Ok(Arc::new(Self { mapping, len }, GFP_KERNEL)?)
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns false, as an empty BAR cannot be mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the registers for as long as `guard` exists, unless the driver was unbound.
    #[inline]
    pub fn access<'a>(&'a self, guard: &'a rcu::Guard) -> Option<&'a Bar<'a>> {
        let named = self.mapping.resource().bar.try_access_with_guard(guard)?;
        let bar: &'a Bar<'a> = &named.bar;
        Some(bar)
    }
}

/// Returns whether a BAR with these flags is memory, with an address.
fn is_memory(flags: c_ulong) -> bool {
    let wanted = bindings::IORESOURCE_MEM as c_ulong;
    let missing = (bindings::IORESOURCE_UNSET | bindings::IORESOURCE_DISABLED) as c_ulong;
    flags & wanted != 0 && flags & missing == 0
}

/// Returns C's pointer to a device.
fn raw(dev: &Device<Bound>) -> *mut bindings::pci_dev {
    // The type is a transparent wrapper.
    core::ptr::from_ref(dev).cast_mut().cast()
}

/// A register of 32 bits that is written to ring a bell.
///
/// That it is in the BAR is checked once, when this is made.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::Bound,
///     pci::{
///         self,
///         bar::{BoundBar, Doorbell},
///     },
///     sync::rcu,
/// };
///
/// fn ring(dev: &pci::Device<Bound>) -> Result {
///     let bar = BoundBar::map(dev, 0, c"example")?;
///     let doorbell = Doorbell::new(bar, 0x1000)?;
///     doorbell.ring(&rcu::read_lock(), 1)
/// }
/// ```
///
/// # Invariants
///
/// The four bytes from `offset` on are in the BAR, and `offset` is a multiple of 4.
pub struct Doorbell {
    bar: Arc<BoundBar>,
    offset: usize,
}

impl Doorbell {
    /// Makes a doorbell of the register at `offset`.
    ///
    /// # Errors
    ///
    /// `EINVAL` unless the offset is a multiple of 4, and the register is in the BAR.
    pub fn new(bar: Arc<BoundBar>, offset: usize) -> Result<Self> {
        if offset % 4 != 0 || offset > bar.len().saturating_sub(4) || bar.len() < 4 {
            return Err(EINVAL);
        }
        // INVARIANT: This was just checked.
        Ok(Self { bar, offset })
    }

    /// Writes to the register.
    ///
    /// What was written to memory before is visible to the device when it sees this.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the driver was unbound.
    #[inline]
    pub fn ring(&self, guard: &rcu::Guard, value: u32) -> Result {
        let bar = self.bar.access(guard).ok_or(ENODEV)?;
        let registers = bar.as_view();
        let at = MmioBackend::as_ptr(registers)
            .cast::<u8>()
            .wrapping_add(self.offset);
        // SAFETY: By the type invariant, the doorbell is in the BAR, at a multiple of its size. So
        // this is a projection.
        let doorbell = unsafe { MmioBackend::project_view(registers, at.cast::<u32>()) };
        doorbell.write_val(value);
        Ok(())
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
