// SPDX-License-Identifier: GPL-2.0

//! A lock is released by the task that has taken it, and a cursor stays with it.

//@ more errors name the other pointers

use kernel::{
    sync::rcu_box::RcuBox,
    xarray::{Cursor, Guard, Reservation},
};

fn send<T: Send>(_: T) {}

pub fn all(
    guard: Guard<'_, RcuBox<u32>>,
    cursor: Cursor<'_, RcuBox<u32>>,
    place: Reservation<'_, RcuBox<u32>>,
) {
    send(place);
    #[cfg(bad)]
    send(guard); //~ ERROR E0277: `*mut ()` cannot be sent between threads safely
    #[cfg(bad)]
    send(cursor); //~ ERROR E0277: `*mut kernel::bindings::xarray` cannot be sent between threads safely
    #[cfg(not(bad))]
    drop((guard, cursor));
}
