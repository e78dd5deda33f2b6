// SPDX-License-Identifier: GPL-2.0

//! What readers share is `Sync`, and what another thread may free is `Send`.

use core::cell::Cell;
use kernel::{
    folio::Folio,
    prelude::*,
    sync::{rcu_box::RcuBox, rcu_ptr::RcuPtr},
    xarray::{Locked, XArray},
};

#[cfg(not(bad))]
type Shared = u32;
#[cfg(bad)]
type Shared = Cell<u32>;

#[cfg(not(bad))]
type Sent = Cell<u32>;
#[cfg(bad)]
type Sent = *mut u32;

#[cfg(not(bad))]
type Freed = RcuBox<u32>;
#[cfg(bad)]
type Freed = KBox<u32>;

pub fn pointer(_: &RcuPtr<RcuBox<Shared>>) {} //~ ERROR E0277: `Cell<u32>` cannot be shared between threads safely
pub fn freed(_: &RcuPtr<Freed>) {} //~ ERROR E0277
pub fn private(_: &Folio<Shared>) {} //~ ERROR E0277: `Cell<u32>` cannot be shared between threads safely
pub fn values(_: &XArray<KBox<Sent>, Locked>) {} //~ ERROR E0277: `*mut u32` cannot be sent between threads safely

pub fn unused(_: Cell<u32>, _: KBox<u32>, _: RcuBox<u32>) {}
