// SPDX-License-Identifier: GPL-2.0

//! Any task can reach the data of a directory, so it has to be `Sync`.
use core::cell::Cell;
use kernel::{configfs::*, prelude::*};

#[cfg(not(bad))]
struct Data(u32);
#[cfg(bad)]
struct Data(Cell<u32>);

impl Directory for Data {
    //~^ ERROR E0277: `Cell<u32>` cannot be shared
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
}
