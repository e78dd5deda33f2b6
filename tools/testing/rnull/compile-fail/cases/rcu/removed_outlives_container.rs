// SPDX-License-Identifier: GPL-2.0

//! A value that was removed does not outlive its container, which keeps the code that frees it.

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{rcu_box::RcuBox, rcu_ptr::RcuPtr},
    xarray::XArray,
};

pub fn array() -> Result {
    let xa = XArray::<RcuBox<u32>>::new(c"case", static_lock_class!());
    let xa = KBox::pin_init(xa, GFP_KERNEL)?;
    xa.insert(1, RcuBox::new(2, GFP_KERNEL)?, GFP_KERNEL)?;
    let removed = xa.remove(1);
    #[cfg(not(bad))]
    drop(removed);
    drop(xa); //~ ERROR E0505: cannot move out of `xa` because it is borrowed
    #[cfg(bad)]
    drop(removed);
    Ok(())
}

pub fn pointer() -> Result {
    let ptr = RcuPtr::new(Some(RcuBox::new(1, GFP_KERNEL)?))?;
    let removed = ptr.replace(None);
    #[cfg(not(bad))]
    drop(removed);
    drop(ptr); //~ ERROR E0505: cannot move out of `ptr` because it is borrowed
    #[cfg(bad)]
    drop(removed);
    Ok(())
}
