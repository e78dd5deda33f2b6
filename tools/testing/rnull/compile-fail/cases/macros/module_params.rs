// SPDX-License-Identifier: GPL-2.0

//! `module_params!` puts no token of its caller inside `unsafe`.

//@ macro: module_params

use kernel::prelude::*;

#[cfg(bad)]
const unsafe fn needs_care() -> u32 {
    1
}

fn check(_: i32) -> Result {
    Ok(())
}

kernel::module_params! {
    module: "case";
    plain: uint = 1, "A number";
    checked: int(check) = 1, "A number";
}

#[cfg(bad)]
kernel::module_params! {
    module: "case";
    smuggled: uint = needs_care(), "A number"; //~ ERROR E0133: call to unsafe function `needs_care` is unsafe
    smuggled_check: int({
        needs_care(); //~ ERROR E0133: call to unsafe function `needs_care` is unsafe
        check
    }) = 1, "A number";
}
