// SPDX-License-Identifier: GPL-2.0

//! A driver for NVM Express controllers without `unsafe`.
//!
//! It enables a controller, and logs what that says about itself and its namespaces. It makes no
//! disks yet.
//!
//! The contract: no content of queue memory, answers or registers, in any order and at any time,
//! makes the CPU touch memory that it does not own, complete a command twice, panic, or loop
//! forever. What the device itself writes to memory is limited by the IOMMU only.
//!
//! The modules are listed in reading order, and each imports only modules below it.

#![forbid(unsafe_code)]

// From the bus to a controller.
mod device;

mod controller;

// From a command to its completion.
mod admin_queue;

mod completion_queue;

mod access;

mod budget;

// What controllers tell: pure files. Some of it is for disks, which do not exist yet.
#[allow(dead_code)]
mod identify;

#[allow(dead_code)]
mod queue_entry;

#[allow(dead_code)]
mod registers;

use device::Nvme;
use kernel::{
    driver::Registration,
    pci::adapter::Adapter,
    prelude::*,
    InPlaceModule, //
};

module! {
    type: Rnvme,
    name: "rnvme_mod",
    authors: ["rnull contributors"],
    description: "NVM Express driver in Rust",
    license: "GPL",
}

/// The module.
#[pin_data]
struct Rnvme {
    #[pin]
    driver: Registration<Adapter<Nvme>>,
}

impl InPlaceModule for Rnvme {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            driver <- Registration::new(c"rnvme", module),
        })
    }
}
