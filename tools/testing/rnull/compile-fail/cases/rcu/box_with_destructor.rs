// SPDX-License-Identifier: GPL-2.0

//! What RCU frees has no destructor, which might be gone with its module.
//@ link
//@ elsewhere: E0080: evaluation of `kernel::sync::rcu_box::RcuBox::

use kernel::{prelude::*, sync::rcu_box::RcuBox};

#[cfg(bad)]
pub fn make() -> Result<RcuBox<KBox<u32>>> {
    Ok(RcuBox::new(KBox::new(1, GFP_KERNEL)?, GFP_KERNEL)?)
}

#[cfg(not(bad))]
pub fn make() -> Result<RcuBox<u32>> {
    Ok(RcuBox::new(1, GFP_KERNEL)?)
}
