// SPDX-License-Identifier: GPL-2.0

//! What the PCI bus asks of the driver.

use super::{
    alarm::ResetRequest,
    controller::Controller,
    prp,
    quirks::Quirks, //
};
use kernel::{
    device::Core,
    dma::DmaMask,
    new_mutex,
    pci::{
        self,
        adapter::{
            Driver,
            LockedWork, //
        },
        Class, //
    },
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// The driver, side by side with C's.
pub(crate) struct Nvme;

// Empty: the driver takes those controllers only that a user gives it.
#[cfg(not(CONFIG_BLK_DEV_RUST_NVME_DROPIN))]
kernel::pci_device_table!(TABLE, (), []);

#[cfg(CONFIG_BLK_DEV_RUST_NVME_DROPIN)]
kernel::pci_device_table!(
    TABLE,
    (),
    [(pci::DeviceId::from_class(0x010802, 0xffffff), ())]
);

/// The data of a device that the driver is bound to.
#[pin_data]
pub(crate) struct Data {
    #[pin]
    controller: Mutex<Controller>,
}

/// Has the driver reset a controller.
struct Reset(Arc<LockedWork<Nvme>>);

impl ResetRequest for Reset {
    fn request(&self) {
        self.0.queue();
    }
}

#[vtable]
impl Driver for Nvme {
    type IdInfo = ();
    type Data<'bound> = Data;
    const ID_TABLE: pci::IdTable<()> = &TABLE;
    const DMA_MASK: DmaMask = DmaMask::new::<64>();
    // The controller is told of pages.
    const DMA_MIN_ALIGN_MASK: u32 = prp::PAGE_SIZE as u32 - 1;

    fn probe<'bound>(
        dev: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound ()>,
        work: Arc<LockedWork<Self>>,
    ) -> impl PinInit<Data, Error> + 'bound {
        let controller = move || {
            // A user may give any device to the driver.
            if dev.pci_class() != Class::STORAGE_EXPRESS {
                dev_err!(dev, "not supported: this is no NVMe controller\n");
                return Err(ENODEV);
            }
            let (vendor, device) = (dev.vendor_id().as_raw(), dev.device_id());
            let quirks = Quirks::of(vendor, device).map_err(|need| {
                dev_err!(
                    dev,
                    "not supported: {vendor:04x}:{device:04x} needs {need}\n"
                );
                ENODEV
            })?;
            Controller::new(dev, Arc::new(Reset(work), GFP_KERNEL)?, quirks)
        };
        // Made when nothing can fail any more after it: it must be stopped before it is dropped.
        try_pin_init!(Data {
            controller <- new_mutex!(controller()?),
        }? Error)
    }

    fn unbind<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Data>) {
        let mut controller = this.controller.lock();
        controller.remove_disks();
        controller.shut_down(dev);
    }

    fn shutdown<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Data>) {
        this.controller.lock().shut_down(dev);
    }

    fn reset_prepare<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Data>) {
        this.controller.lock().disable(dev);
    }

    fn work<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Data>) {
        this.controller.lock().reset_if_failed(dev);
    }

    fn reset_done<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Data>) {
        if let Err(error) = this.controller.lock().enable(dev) {
            dev_err!(dev, "not enabled after a reset: {error:?}\n");
        }
    }
}
