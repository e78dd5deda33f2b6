// SPDX-License-Identifier: GPL-2.0

//! No attribute gets past `forbid(unsafe_code)` in a macro that takes it: this one would put four
//! bytes of the driver's choice where the kernel looks for the addresses of functions to call.

//@ macro: module_params

#![forbid(unsafe_code)]

use kernel::prelude::*;

kernel::module_params! {
    module: "case";
    /// What the user asked for.
    depth: uint = 1, "Depth";
}

#[cfg(bad)]
kernel::module_params! {
    module: "case";
    #[link_section = ".initcall6.init"] //~ ERROR no rules expected
    section: uint = 1, "A function";
}

#[cfg(bad)]
kernel::module_params! {
    @static
    [#[link_section = ".initcall6.init"]] //~ ERROR declaration of a static with `link_section`
    [pub] inner uint [] [1]
}

pub fn depth() -> u32 {
    DEPTH.get()
}
