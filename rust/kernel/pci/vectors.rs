// SPDX-License-Identifier: GPL-2.0

//! Interrupt vectors that are spread over the CPUs.
//!
//! C header: [`include/linux/pci.h`](srctree/include/linux/pci.h)

use crate::{
    bindings,
    cpumask::{
        Cpumask,
        CpumaskVar, //
    },
    device::{
        Bound,
        Core, //
    },
    module_pin::ModulePin,
    new_mutex,
    pci::{
        claim::{
            raw,
            Claim, //
        },
        Device,
        IrqType, //
    },
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex,
        UniqueArc, //
    },
    until_unbind::{
        AtUnbind,
        Release, //
    },
};

/// The most sets over which vectors are divided.
pub const MAX_SETS: usize = bindings::IRQ_AFFINITY_MAX_SETS as usize;

/// The most vectors that a device can have.
pub const MAX_VECTORS: u32 = 2048;

/// The kinds of interrupts that [`IrqVectors`] may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrqKinds {
    /// Messages if the device has them, else its interrupt line.
    All,
    /// Messages only, for drivers that cannot deal with a line that other devices share.
    Messages,
    /// The interrupt line only, of which there is one.
    Line,
}

/// What [`IrqVectors`] are asked for.
///
/// # Examples
///
/// ```
/// use kernel::pci::vectors::{IrqKinds, VectorRequest};
///
/// // A vector for administration, eight for writes, the rest for reads.
/// let request = VectorRequest {
///     min: 1,
///     max: 33,
///     kinds: IrqKinds::All,
///     before: 1,
///     sets: &[8, u32::MAX],
/// };
/// // On a machine of 32 CPUs: with few vectors, each set gets one, as long as there are any.
/// assert_eq!(request.divide(2, 32), [1, 1, 0, 0]);
/// assert_eq!(request.divide(32, 32), [8, 24, 0, 0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct VectorRequest<'a> {
    /// The fewest vectors that will do.
    pub min: u32,
    /// The most vectors that are useful.
    pub max: u32,
    /// What kinds of interrupts will do.
    pub kinds: IrqKinds,
    /// How many vectors at the beginning are not spread over the CPUs. Their affinity can be
    /// changed by users, unlike that of the others.
    pub before: u32,
    /// The sizes of the sets that follow. Each set is spread over all CPUs.
    ///
    /// A set gets as many vectors as are left, up to its size, but leaves one for each that
    /// follows. The last one gets all that are left. Without any sizes there is one set. No set
    /// gets more vectors than there are CPUs. If `min` asks for more than that, the vectors after
    /// the sets belong to none.
    pub sets: &'a [u32],
}

impl VectorRequest<'_> {
    /// Returns the sizes of the sets if they have so many vectors together, on a machine that may
    /// have so many CPUs.
    pub fn divide(&self, vectors: u32, cpus: u32) -> [u32; MAX_SETS] {
        let mut sizes = [0; MAX_SETS];
        let count = self.sets.len().clamp(1, MAX_SETS);
        let mut left = vectors;
        for (index, size) in sizes[..count].iter_mut().enumerate() {
            // At most `MAX_SETS`.
            let following = (count - 1 - index) as u32;
            let wanted = match self.sets.get(index) {
                Some(wanted) if following > 0 => (*wanted).max(1),
                _ => u32::MAX,
            };
            let available = left.saturating_sub(following).max(1).min(left);
            *size = wanted.min(available).min(cpus);
            left -= *size;
        }
        sizes
    }

    /// Returns the most vectors that are useful on a machine that may have so many CPUs.
    fn most(&self, cpus: u32) -> u32 {
        let spread: u32 = self.divide(MAX_VECTORS, cpus).iter().sum();
        (self.before + spread).clamp(self.min, self.max)
    }

    fn check(&self) -> Result {
        let is_valid = self.min >= 1
            && self.min <= self.max
            && self.max <= MAX_VECTORS
            && self.before <= self.min
            && self.sets.len() <= MAX_SETS;
        if is_valid {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }
}

/// Interrupt vectors of a device.
///
/// A device has at most one allocation of vectors at a time, whether they are messages or its line.
/// It is freed by [`Self::free`], or when the driver is unbound, but not when this is dropped. C
/// holds the lock of the device when it changes what it has recorded of the vectors, so a task that
/// allocates or frees them must have a device whose lock is held: a callback of the driver.
///
/// Each handler holds a reference. So no vector is freed that has a handler, and those of a device
/// can be freed and allocated anew while the driver is bound.
///
/// The vectors of [`Device::alloc_irq_vectors`] count as an allocation as well. In an unmodified
/// kernel that function does not know of these, and dropping what it returns frees them, although
/// they have handlers. So a module for such a kernel must not use both for a device. This is an
/// exception from what safe code may rely on.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::Core,
///     pci::{
///         self,
///         vectors::{IrqKinds, IrqVectors, VectorRequest},
///     },
///     sync::Arc,
/// };
///
/// fn one_for_each_cpu(dev: &pci::Device<Core<'_>>, cpus: u32) -> Result<Arc<IrqVectors>> {
///     let vectors = IrqVectors::new(dev, VectorRequest {
///         min: 1,
///         max: 1 + cpus,
///         kinds: IrqKinds::All,
///         before: 1,
///         sets: &[],
///     })?;
///     dev_info!(dev, "{} vectors\n", vectors.len());
///     Ok(vectors)
/// }
/// ```
pub struct IrqVectors {
    allocation: AtUnbind<Allocation>,
}

/// What was allocated.
///
/// # Invariants
///
/// As long as `owned` contains a value, the interrupts with these numbers are those of
/// `dev`.
#[pin_data]
struct Allocation {
    dev: ARef<Device>,
    kind: IrqType,
    sets: [u32; MAX_SETS],
    numbers: KVec<u32>,
    masks: Masks,
    #[pin]
    owned: Mutex<Option<Owned>>,
}

/// Vectors, which are freed when this is dropped.
///
/// # Invariants
///
/// If `kind` is that of messages, they are allocated, and belong to this.
struct Owned {
    claim: Claim,
    kind: IrqType,
}

/// Copies of the masks of vectors, if these are spread.
struct Masks(KVec<Option<CpumaskVar>>);

// SAFETY: A mask is memory of its own.
unsafe impl Send for Masks {}

// SAFETY: The masks are not changed.
unsafe impl Sync for Masks {}

impl IrqVectors {
    /// Allocates vectors. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request contradicts itself; `EBUSY` if the device has vectors already;
    /// `ENOSPC` if it does not have as many; `ENOMEM` if out of memory.
    ///
    /// The memory is allocated with `GFP_KERNEL`, for which the kernel may wait for I/O. Where I/O
    /// may wait for the caller, such as while a disk is being reset, this needs a NOIO scope.
    pub fn new(dev: &Device<Core<'_>>, request: VectorRequest<'_>) -> Result<Arc<Self>> {
        request.check()?;
        // SAFETY: The helper may be called anywhere.
        let cpus = unsafe { bindings::pci_vectors_cpus() };
        let pin = ModulePin::of_this_code()?;
        let this = UniqueArc::new_uninit(GFP_KERNEL)?;
        let claim = Claim::new(dev)?;
        let (owned, len) = Owned::new(dev, claim, request, cpus)?;
        let sets = request.divide(len.saturating_sub(request.before), cpus);
        let spread = request.before..request.before + sets.iter().sum::<u32>();
        let mut numbers = KVec::with_capacity(len as usize, GFP_KERNEL)?;
        let mut masks = KVec::with_capacity(len as usize, GFP_KERNEL)?;
        for index in 0..len {
            numbers.push_within_capacity(owned.number(index)?)?;
            let is_spread = spread.contains(&index) && !matches!(owned.kind, IrqType::Intx);
            masks.push_within_capacity(if is_spread { owned.mask(index)? } else { None })?;
        }
        let allocation = Arc::pin_init(
            // INVARIANT: The numbers are those of the vectors.
            pin_init!(Allocation {
                dev: dev.into(),
                kind: owned.kind,
                sets,
                numbers,
                masks: Masks(masks),
                owned <- new_mutex!(Some(owned)),
            }),
            GFP_KERNEL,
        )?;
        let allocation = AtUnbind::new(dev.as_ref(), allocation, pin)?;
        Ok(this.write(Self { allocation }).into())
    }

    /// Frees the vectors of a device. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if they are those of another device. `EBUSY` if there is another reference, such
    /// as that of a handler, even if a task is just dropping it. The vectors stay allocated then,
    /// and `new` returns `EBUSY`, until another reference is passed to this, or the driver is
    /// unbound.
    pub fn free(this: Arc<Self>, dev: &Device<Core<'_>>) -> Result {
        if raw(dev) != raw(&*this.allocation.resource().dev) {
            return Err(EINVAL);
        }
        let this = Arc::into_unique_or_drop(this).ok_or(EBUSY)?;
        this.allocation.release();
        Ok(())
    }

    /// Returns the number of vectors, which is at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        // At most `MAX_VECTORS`.
        self.allocation.resource().numbers.len() as u32
    }

    /// Returns the kind of the vectors.
    pub fn kind(&self) -> IrqType {
        self.allocation.resource().kind
    }

    /// Returns whether this is the interrupt line of the device, which other devices may share.
    pub fn is_line(&self) -> bool {
        matches!(self.kind(), IrqType::Intx)
    }

    /// Returns the sizes of the sets, which begin after the vectors that are not spread.
    pub fn sets(&self) -> [u32; MAX_SETS] {
        self.allocation.resource().sets
    }

    /// Returns the CPUs that a vector interrupts; [`None`] if it is not spread, or does not exist.
    pub fn affinity(&self, index: u32) -> Option<&Cpumask> {
        let masks = &self.allocation.resource().masks.0;
        Some(masks.get(index as usize)?.as_ref()?)
    }

    /// Fails unless the vectors are allocated, and those of `dev`.
    ///
    /// If this succeeds, they remain allocated as long as both references exist.
    #[cfg_attr(CONFIG_S390, allow(dead_code))] // Used by handlers of interrupts.
    fn check(&self, dev: &Device<Bound>) -> Result {
        let allocation = self.allocation.resource();
        if raw(dev) != raw(&*allocation.dev) {
            Err(EINVAL)
        } else if allocation.owned.lock().is_some() {
            Ok(())
        } else {
            Err(ENODEV)
        }
    }

    /// Returns the number of the interrupt of a vector.
    ///
    /// If this succeeds, the vectors remain allocated as long as both references exist.
    #[cfg_attr(CONFIG_S390, allow(dead_code))] // As above.
    pub(crate) fn number(&self, dev: &Device<Bound>, index: u32) -> Result<u32> {
        self.check(dev)?;
        let numbers = &self.allocation.resource().numbers;
        numbers.get(index as usize).copied().ok_or(EINVAL)
    }
}

/// What C uses to spread vectors.
struct Spread<'a> {
    request: VectorRequest<'a>,
    cpus: u32,
}

impl Owned {
    /// Allocates vectors of a device, on which there is a claim. Returns their number, too.
    fn new(
        dev: &Device<Core<'_>>,
        claim: Claim,
        request: VectorRequest<'_>,
        cpus: u32,
    ) -> Result<(Self, u32)> {
        let raw = raw(dev);
        let mut len = -(bindings::ENOSPC as c_int);
        if request.kinds != IrqKinds::Line {
            let mut asked = Spread { request, cpus };
            let mut spread = bindings::irq_affinity {
                pre_vectors: request.before,
                calc_sets: Some(calc_sets),
                priv_: (&raw mut asked).cast(),
                ..pin_init::zeroed()
            };
            // SAFETY: The device is valid, bound, and its lock is held. `spread` is only used
            // during the call; with it `calc_sets`, which gets what is asked for. By the claim, the
            // device has no vectors.
            len = unsafe {
                bindings::pci_vectors_alloc(
                    raw,
                    request.min,
                    request.most(cpus),
                    bindings::PCI_IRQ_MSI | bindings::PCI_IRQ_MSIX | bindings::PCI_IRQ_AFFINITY,
                    &mut spread,
                )
            };
        }
        // By itself: C has no use for affinity here, and would leak the masks that it makes.
        if len < 0 && request.kinds != IrqKinds::Messages {
            let spread = core::ptr::null_mut();
            // SAFETY: As above; without affinity, `spread` may be null.
            len = unsafe {
                bindings::pci_vectors_alloc(raw, request.min, 1, bindings::PCI_IRQ_INTX, spread)
            };
        }
        let len = u32::try_from(len).map_err(|_| Error::from_errno(len))?;
        // INVARIANT: They were just allocated for this claim.
        let owned = Self {
            // SAFETY: The device is valid.
            kind: match unsafe { bindings::pci_irq_type(raw) } {
                bindings::PCI_IRQ_MSIX => IrqType::MsiX,
                bindings::PCI_IRQ_MSI => IrqType::Msi,
                _ => IrqType::Intx,
            },
            claim,
        };
        Ok((owned, len))
    }

    /// Returns the number of the interrupt of a vector.
    fn number(&self, index: u32) -> Result<u32> {
        // SAFETY: The device is valid.
        let number = unsafe { bindings::pci_vectors_irq(self.claim.raw(), index) };
        match u32::try_from(number) {
            Ok(0) | Err(_) => Err(EINVAL),
            Ok(number) => Ok(number),
        }
    }

    /// Returns a copy of the mask of a vector, which must exist, if it has one.
    fn mask(&self, index: u32) -> Result<Option<CpumaskVar>> {
        // SAFETY: The device is valid, and is not without vectors meanwhile.
        let mask = unsafe { bindings::pci_vectors_affinity(self.claim.raw(), index as c_int) };
        if mask.is_null() {
            return Ok(None);
        }
        // SAFETY: The mask exists as long as the vectors do, and is not changed: the affinity in
        // force is another one.
        CpumaskVar::try_clone(unsafe { Cpumask::from_raw(mask) }).map(Some)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !matches!(self.kind, IrqType::Intx) {
            // SAFETY: By the type invariant they are allocated. The lock of the device is held:
            // this happens in `IrqVectors::new`, in `IrqVectors::free`, or while the driver is
            // being unbound. Each handler holds a reference to them, so that they are not freed,
            // and at the unbinding the handlers were removed before, since they were added later.
            unsafe { bindings::pci_vectors_free(self.claim.raw()) };
        }
    }
}

/// Sets the sizes of the sets for so many vectors. They never have more together, which C relies
/// on.
///
/// # Safety
///
/// `spread` must be valid, and point to a [`Spread`].
unsafe extern "C" fn calc_sets(spread: *mut bindings::irq_affinity, vectors: c_uint) {
    // SAFETY: By the safety requirements.
    let spread = unsafe { &mut *spread };
    // SAFETY: As above.
    let asked = unsafe { &*spread.priv_.cast::<Spread<'_>>() };
    let sizes = asked.request.divide(vectors, asked.cpus);
    // A set without vectors is one of the last.
    spread.nr_sets = sizes.iter().take_while(|size| **size > 0).count() as c_uint;
    spread.set_size = sizes;
}

impl Release for Allocation {
    // C holds the lock of the device while a driver is unbound.
    fn release(&self) {
        *self.owned.lock() = None;
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
pub(crate) mod tests;
