// SPDX-License-Identifier: GPL-2.0

//! What the caller writes in a check is not in an `unsafe` block of the macro.
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
