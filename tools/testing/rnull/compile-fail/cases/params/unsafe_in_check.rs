// SPDX-License-Identifier: GPL-2.0

//! The check of a parameter is not expanded inside an `unsafe` block.
//@ macro: module_params
use kernel::prelude::*;

#[cfg(bad)]
unsafe fn check(_value: i32) -> Result {
    Ok(())
}
#[cfg(not(bad))]
fn check(_value: i32) -> Result {
    Ok(())
}

kernel::module_params! {
    module: "case";
    mode: int(|value| check(value)) = 1, "Mode"; //~ ERROR E0133
}
