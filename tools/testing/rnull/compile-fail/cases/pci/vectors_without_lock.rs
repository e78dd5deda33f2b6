// SPDX-License-Identifier: GPL-2.0

//! Vectors are freed only where the lock of the device is held, not by any task.

use kernel::{
    device::{
        Bound,
        Core, //
    },
    pci::{
        vectors::IrqVectors,
        Device, //
    },
    prelude::*,
    sync::Arc, //
};

#[cfg(bad)]
pub fn free(vectors: Arc<IrqVectors>, dev: &Device<Bound>) -> Result {
    IrqVectors::free(vectors, dev) //~ ERROR E0308: mismatched types
}

#[cfg(not(bad))]
pub fn free(vectors: Arc<IrqVectors>, dev: &Device<Core<'_>>) -> Result {
    IrqVectors::free(vectors, dev)
}
