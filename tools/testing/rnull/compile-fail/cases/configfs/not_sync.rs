// SPDX-License-Identifier: GPL-2.0

//! The data of a group has to be `Sync`, because callbacks run concurrently.
use core::cell::Cell;
use kernel::{configfs::*, prelude::*};

#[cfg(not(bad))]
struct Data(u32);
#[cfg(bad)]
struct Data(Cell<u32>);

impl Group for Data {
    //~^ ERROR E0277: `Cell<u32>` cannot be shared
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
}
