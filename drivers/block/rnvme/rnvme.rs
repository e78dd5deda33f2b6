// SPDX-License-Identifier: GPL-2.0

//! A driver for NVM Express controllers without `unsafe`.
//!
//! It makes a disk of each namespace of a controller, with a queue pair for each CPU.
//!
//! The contract: no content of queue memory, answers or registers, in any order and at any time,
//! makes the CPU touch memory that it does not own, complete a command twice, panic, or loop
//! forever. What the device itself writes to memory is limited by the IOMMU only.
//!
//! The modules are listed in reading order, and each imports only modules below it.

#![forbid(unsafe_code)]

// From the bus to a controller and its disks.
mod device;

mod controller;

mod control;

mod ioctl;

mod io_queues;

mod queue_counts;

mod events;

mod namespaces;

mod disk_limits;

mod generic;

mod disk_files;

mod instance;

mod dispatch;

// From a request to its completion.
mod io_queue;

mod attempts;

mod admin;

mod lists;

mod link;

mod queue_pair;

mod completion_queue;

mod alarm;

mod log_limit;

mod access;

mod budget;

mod params;

mod names;

// What is sent to controllers, and what they tell: pure files.
mod command;

mod effects;

mod user_command;

mod sgl;

mod prp;

mod data_pointer;

mod queue_entry;

mod event;

mod identify;

mod registers;

mod quirks;

use control::Classes;
use device::Nvme;
use kernel::{
    driver::Registration,
    pci::adapter::Adapter,
    prelude::*,
    InPlaceModule, //
};

names::module! {
    type: Rnvme,
    authors: ["rnull contributors"],
    description: "NVM Express driver in Rust",
    license: "GPL",
}

/// The module.
#[pin_data]
struct Rnvme {
    #[pin]
    driver: Registration<Adapter<Nvme>>,
    /// After the driver, which uses it.
    classes: Classes,
}

impl InPlaceModule for Rnvme {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        params::sanitize();
        try_pin_init!(Self {
            classes: Classes::new(module)?,
            driver <- Registration::new(names::DRIVER, module),
        })
    }
}
