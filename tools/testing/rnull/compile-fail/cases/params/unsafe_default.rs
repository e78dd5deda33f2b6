// SPDX-License-Identifier: GPL-2.0

//! The default of a parameter is not expanded inside an `unsafe` block.
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
