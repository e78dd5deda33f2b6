// SPDX-License-Identifier: GPL-2.0

//! A pointer and an array are read in a critical section of RCU only.

use kernel::{
    sync::{rcu, rcu_box::RcuBox, rcu_ptr::RcuPtr},
    xarray::XArray,
};

pub fn pointer(ptr: &RcuPtr<RcuBox<u32>>) -> bool {
    #[cfg(bad)]
    return ptr.load().is_some(); //~ ERROR E0061: this method takes 1 argument but 0 arguments were supplied
    #[cfg(not(bad))]
    ptr.load(&rcu::read_lock()).is_some()
}

pub fn array(xa: &XArray<RcuBox<u32>>) -> bool {
    #[cfg(bad)]
    return xa.load(1).is_some(); //~ ERROR E0061: this method takes 2 arguments but 1 argument was supplied
    #[cfg(not(bad))]
    xa.load(&rcu::read_lock(), 1).is_some()
}
