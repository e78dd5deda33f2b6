// SPDX-License-Identifier: GPL-2.0

//! A default has the type of its parameter.
//@ macro: module_params
use kernel::prelude::*;

kernel::module_params! {
    module: "case";
    #[cfg(not(bad))]
    depth: uint = 1, "Depth";
    #[cfg(bad)]
    depth: uint = "one", "Depth"; //~ ERROR E0308: mismatched types
}
