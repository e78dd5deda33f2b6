// SPDX-License-Identifier: GPL-2.0

//! C tells a pointer from its own entries by the alignment.
//@ link
//@ elsewhere: ::ALIGNED` failed

use kernel::{
    prelude::*,
    static_lock_class,
    types::ForeignOwnable,
    xarray::{Locked, XArray},
};

#[cfg(bad)]
type Value = ();
#[cfg(not(bad))]
type Value = KBox<u8>;

pub fn make() -> Result {
    let xa = XArray::<Value, Locked>::new(c"case", static_lock_class!());
    drop(KBox::pin_init(xa, GFP_KERNEL)?);
    Ok(())
}

pub const ALIGN: usize = <Value as ForeignOwnable>::FOREIGN_ALIGN;
