// SPDX-License-Identifier: GPL-2.0

//! The kernel crate of an unmodified kernel, with our modules instead of its own.
//!
//! A module built for a kernel that is already running uses the finished `kernel` crate of that
//! kernel. This facade re-exports all of it, and the declarations below shadow those of the glob.
//! Drivers are compiled with `--extern kernel=liboverlay.rmeta`, so they need no change. See
//! `Kbuild`.
//!
//! This file is not used in a Linux tree: the same modules are part of the kernel crate there.

pub use kernel::*;

/// Prefix of log messages printed from within this crate.
const __LOG_PREFIX: &[u8] = b"rnull\0";

/// The bindings of C: those of the kernel, plus those of the helpers in this repository.
#[allow(clippy::all, improper_ctypes, missing_docs, unreachable_pub)]
#[doc(hidden)]
pub mod bindings {
    use kernel::ffi;

    pub use kernel::bindings::*;

    include!(env!("OVERLAY_BINDINGS"));
}

pub mod block;
pub mod configfs;
pub mod fault;
pub mod params;

pub mod device_class;

pub mod attribute_text;

pub mod xarray;

pub mod folio;

mod gfp;

/// The synchronisation primitives of the kernel, and ours.
pub mod sync {
    pub use kernel::sync::*;

    pub mod rcu_slot;

    pub mod rcu_ptr;

    pub mod rcu_box;

    pub mod rcu_free;

    pub mod seqcount;

    pub(crate) mod srcu_fast;
}

pub mod trace;

/// Interrupts, and our handlers of them.
pub mod irq {
    pub use kernel::irq::*;

    #[cfg(all(CONFIG_PCI, not(CONFIG_S390)))]
    pub mod exclusive;
}

/// The PCI bus, and what we have to add to it.
#[cfg(CONFIG_PCI)]
pub mod pci {
    pub use kernel::pci::*;

    pub mod adapter;

    pub mod bus_master;

    pub mod bar;

    pub mod vectors;

    mod claim;
}

/// DMA memory, our pools of it, and devices to map memory for.
pub mod dma {
    pub use kernel::dma::*;

    pub mod pool;

    pub mod bound;
}

pub mod capability;

pub mod compat;

pub mod fatal_signal;

mod until_unbind;

mod owned_queue;

mod late_drop;

mod module_pin;
