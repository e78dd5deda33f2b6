// SPDX-License-Identifier: GPL-2.0

//! The default of a parameter has the type of the parameter.
//@ macro: module_params
use kernel::prelude::*;

#[cfg(not(bad))]
kernel::module_params! {
    module: "case";
    depth: uint = 1, "Depth";
}

#[cfg(bad)]
kernel::module_params! {
    module: "case";
    depth: uint = "one", "Depth"; //~ ERROR E0308: mismatched types
}
