// SPDX-License-Identifier: GPL-2.0

//! The parent of a disk is bound, hence in the system, when the disk is built.

use kernel::{
    block::{gendisk::GenDiskBuilder, mq::Operations},
    device::{Bound, Device},
    prelude::*,
};

pub fn case<T: Operations>(
    builder: GenDiskBuilder<T>,
    bound: &Device<Bound>,
    any: &Device,
) -> Result<GenDiskBuilder<T>> {
    #[cfg(bad)]
    let parent = any;
    #[cfg(not(bad))]
    let parent = (bound, any).0;
    builder.parent(parent) //~ ERROR E0308: mismatched types
}
