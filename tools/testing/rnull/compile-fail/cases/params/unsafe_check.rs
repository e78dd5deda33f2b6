// SPDX-License-Identifier: GPL-2.0

//! The check of a parameter is a safe function.
//@ macro: module_params
use kernel::prelude::*;

#[cfg(not(bad))]
fn check(_value: i32) -> Result {
    Ok(())
}
#[cfg(bad)]
unsafe fn check(_value: i32) -> Result {
    Ok(())
}

kernel::module_params! {
    module: "case";
    mode: int(check) = 1, "Mode"; //~ ERROR E0308
}
