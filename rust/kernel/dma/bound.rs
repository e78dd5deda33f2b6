// SPDX-License-Identifier: GPL-2.0

//! A device that memory can be mapped for while its driver is bound.
//!
//! When the driver is unbound, C resets what mapping and unmapping depend on, and the device may
//! then be removed. So both happen in an RCU read-side critical section, after a look at a flag
//! that the unbinding clears before it waits for a grace period.
//!
//! C header: [`include/linux/dma-mapping.h`](srctree/include/linux/dma-mapping.h)

use crate::{
    bindings,
    device::{
        Bound,
        Device, //
    },
    module_pin::ModulePin,
    prelude::*,
    revocable::Revocable,
    sync::{
        aref::ARef,
        rcu,
        Arc, //
    },
    until_unbind::{
        Release,
        UntilUnbind, //
    },
};

/// A device that the memory of requests can be mapped for, until its driver is unbound.
///
/// The last reference must not be dropped under a guard of RCU or a spinlock: that may wait for a
/// grace period.
///
/// # Examples
///
/// ```
/// use kernel::{
///     block::{gendisk::{GenDiskBuilder, NewDisk}, mq::{Operations, TagSet}},
///     device::{Bound, Device},
///     dma::bound::DmaDevice,
///     sync::{static_lock_class, Arc},
/// };
///
/// fn disk<T: Operations<QueueData = u32>>(
///     dev: &Device<Bound>,
///     tags: Arc<TagSet<T>>,
/// ) -> Result<NewDisk<T>> {
///     GenDiskBuilder::new(tags, static_lock_class!())
///         .dma_device(DmaDevice::new(dev)?)
///         .build(c"example", Ok(0))
/// }
/// ```
pub struct DmaDevice {
    /// That of `_until`, which costs fewer loads here.
    binding: Arc<Binding>,
    max_size: usize,
    opt_size: usize,
    _until: UntilUnbind<Binding>,
}

/// A device, until its driver is unbound.
///
/// # Invariants
///
/// The device has a DMA mask. While it can be accessed, its driver is bound.
#[pin_data]
struct Binding {
    #[pin]
    dev: Revocable<ARef<Device>>,
}

impl Release for Binding {
    fn release(&self) {
        // This waits for a grace period.
        self.dev.revoke();
    }
}

impl DmaDevice {
    /// Allows memory to be mapped for `dev`. May sleep.
    ///
    /// The DMA mask of the device is set before.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device, or the kernel, cannot access memory by DMA; `ENOMEM` if out of
    /// memory; `EAGAIN` while the parameters of the module are being parsed.
    ///
    /// The memory is allocated with `GFP_KERNEL`, for which the kernel may wait for I/O. Where I/O
    /// may wait for the caller, such as while a disk is being reset, this needs a NOIO scope.
    pub fn new(dev: &Device<Bound>) -> Result<Arc<Self>> {
        let raw = raw(dev);
        // SAFETY: The device is valid. Its bus has set the mask, before the driver was bound.
        let mask = unsafe { (*raw).dma_mask };
        if cfg!(not(CONFIG_HAS_DMA)) || mask.is_null() {
            return Err(EOPNOTSUPP);
        }
        let pin = ModulePin::of_this_code()?;
        // INVARIANT: The device has a mask and its driver is bound. The reference is revoked when
        // the driver is unbound.
        let binding = Arc::pin_init(
            pin_init!(Binding {
                dev <- Revocable::new(ARef::from(&**dev)),
            }),
            GFP_KERNEL,
        )?;
        let this = Self {
            binding: binding.clone(),
            // SAFETY: The device is bound, and has a mask.
            max_size: unsafe { bindings::blk_dma_max_size(raw) },
            // SAFETY: As above.
            opt_size: unsafe { bindings::blk_dma_opt_size(raw) },
            _until: UntilUnbind::new(dev, binding, pin)?,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Returns the number of bytes beyond which a segment cannot be mapped at all.
    ///
    /// The requests of a disk must not be larger: mapping one would fail each time that it is
    /// tried.
    pub fn max_mapping_size(&self) -> usize {
        self.max_size
    }

    /// Returns the number of bytes beyond which mapping is slow, such as in an IOMMU without caches
    /// for ranges of that size.
    pub fn opt_mapping_size(&self) -> usize {
        self.opt_size
    }

    /// Returns whether memory can be mapped and unmapped for as long as `guard` exists.
    #[inline]
    pub fn is_bound(&self, guard: &rcu::Guard) -> bool {
        self.access(guard).is_some()
    }

    /// Returns the device, unless its driver was unbound. It has a DMA mask, and its driver remains
    /// bound for as long as `guard` exists.
    #[inline]
    pub(crate) fn access(&self, guard: &rcu::Guard) -> Option<*mut bindings::device> {
        Some(raw(self.binding.dev.try_access_with_guard(guard)?))
    }
}

/// Returns C's pointer to a device.
#[inline]
fn raw(dev: &Device<impl crate::device::DeviceContext>) -> *mut bindings::device {
    // The type is a transparent wrapper.
    core::ptr::from_ref(dev).cast_mut().cast()
}
