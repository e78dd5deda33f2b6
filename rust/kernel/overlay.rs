// SPDX-License-Identifier: GPL-2.0

//! The kernel crate of an unmodified kernel, with our modules in the place of its own.
//!
//! A module built for a kernel that is already running finds a finished `kernel` crate there. This
//! facade passes all of it on, and what it declares itself shadows what the glob brings. Drivers
//! are compiled with `--extern kernel=liboverlay.rmeta`, so they need not know. See `Kbuild`.
//!
//! In a Linux tree this file is not used: there, the same modules belong to the kernel crate.

pub use kernel::*;

/// Prefix of log messages printed from within this crate.
const __LOG_PREFIX: &[u8] = b"rnull\0";

/// The C side: the kernel's bindings, plus those of the helpers that come with this repository.
#[allow(clippy::all, improper_ctypes, missing_docs, unreachable_pub)]
#[doc(hidden)]
pub mod bindings {
    use kernel::ffi;

    pub use kernel::bindings::*;

    include!(env!("OVERLAY_BINDINGS"));
}

pub mod page_store;

pub mod block;
pub mod configfs;
pub mod fault;
pub mod params;

mod late_drop;

mod module_pin;
