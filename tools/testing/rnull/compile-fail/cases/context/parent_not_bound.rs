// SPDX-License-Identifier: GPL-2.0

//! The parent of disks is bound, hence in the system, when it is made one.

use kernel::{
    block::gendisk::Parent,
    device::{Bound, Device},
    prelude::*,
    sync::Arc,
};

pub fn case(bound: &Device<Bound>, any: &Device) -> Result<Arc<Parent>> {
    #[cfg(bad)]
    let parent = any;
    #[cfg(not(bad))]
    let parent = (bound, any).0;
    Parent::new(parent) //~ ERROR E0308: mismatched types
}
