// SPDX-License-Identifier: GPL-2.0

//! A value that RCU readers may be using is not changed.

use kernel::{
    sync::rcu_box::RcuBox,
    xarray::{Guard, Locked, Rcu},
};

#[cfg(bad)]
type Mode = Rcu;
#[cfg(not(bad))]
type Mode = Locked;

pub fn change(mut guard: Guard<'_, RcuBox<u32>, Mode>) -> bool {
    guard.get_mut(1).is_some() //~ ERROR E0599: no method named `get_mut` found
}

pub fn unused(_: Guard<'_, RcuBox<u32>, Rcu>, _: Guard<'_, RcuBox<u32>, Locked>) {}
