// SPDX-License-Identifier: GPL-2.0

//! A value that belongs to who removes it is not read without the lock.

use kernel::{
    sync::{rcu, rcu_box::RcuBox},
    xarray::{Locked, Rcu, XArray},
};

#[cfg(bad)]
type Mode = Locked;
#[cfg(not(bad))]
type Mode = Rcu;

pub fn read(xa: &XArray<RcuBox<u32>, Mode>) -> bool {
    xa.load(&rcu::read_lock(), 1).is_some() //~ ERROR E0599: no method named `load` found
}

pub fn unused(_: &XArray<RcuBox<u32>, Rcu>, _: &XArray<RcuBox<u32>, Locked>) {}
