// SPDX-License-Identifier: GPL-2.0

//! A value that was removed is not used after it was given to be freed.

use kernel::sync::{rcu_box::RcuBox, rcu_free::RcuBatch, rcu_ptr::RcuPtr};

pub fn dropped(ptr: &RcuPtr<RcuBox<u32>>) -> Option<u32> {
    let removed = ptr.replace(None)?;
    let value = removed.borrow();
    #[cfg(not(bad))]
    let value = *value;
    drop(removed); //~ ERROR E0505: cannot move out of `removed` because it is borrowed
    #[cfg(bad)]
    let value = *value;
    Some(value)
}

pub fn pushed(ptr: &RcuPtr<RcuBox<u32>>) -> Option<u32> {
    let mut batch = RcuBatch::new();
    let removed = ptr.replace(None)?;
    let value = removed.borrow();
    #[cfg(not(bad))]
    let value = *value;
    batch.push(removed); //~ ERROR E0505: cannot move out of `removed` because it is borrowed
    #[cfg(bad)]
    let value = *value;
    Some(value)
}
