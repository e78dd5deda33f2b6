// SPDX-License-Identifier: GPL-2.0

//! `module_params!` accepts no attributes, which `forbid(unsafe_code)` would not see in a
//! macro.
//!
//! The attribute here would put four bytes of the driver's choice into a section of function
//! addresses.

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
