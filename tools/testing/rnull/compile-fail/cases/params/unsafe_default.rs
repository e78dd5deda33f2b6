// SPDX-License-Identifier: GPL-2.0

//! What the caller writes as a default is not in an `unsafe` block of the macro.
//@ macro: module_params
use kernel::prelude::*;

#[cfg(not(bad))]
const fn depth() -> u32 {
    1
}
#[cfg(bad)]
const unsafe fn depth() -> u32 {
    1
}

kernel::module_params! {
    module: "case";
    depth: uint = depth(), "Depth"; //~ ERROR E0133
    mode: int(|_| Ok(())) = 1, "Mode";
    label: string, "Label";
}
