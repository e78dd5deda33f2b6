// SPDX-License-Identifier: GPL-2.0

//! The affinity of a vector does not outlive the vectors.

use kernel::{
    pci::vectors::IrqVectors,
    prelude::*,
    sync::Arc, //
};

pub fn weight(vectors: Arc<IrqVectors>) -> Result<u32> {
    let mask = vectors.affinity(0).ok_or(EINVAL)?;
    #[cfg(bad)]
    drop(vectors); //~ ERROR E0505: cannot move out of `vectors` because it is borrowed
    Ok(mask.weight())
}
