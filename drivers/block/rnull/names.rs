// SPDX-License-Identifier: GPL-2.0

//! What users call the driver: by its own names, or as a drop-in by those of C's `null_blk`.
//!
//! A drop-in is for scripts that cannot be told another name. It takes the place of C's driver,
//! so a kernel has one of the two.

use kernel::prelude::*;

const DROP_IN: bool = cfg!(CONFIG_BLK_DEV_RUST_NULL_DROPIN);

/// The directory in the root of configfs.
pub(crate) const TREE: &CStr = if DROP_IN { c"nullb" } else { c"rnull" };

/// The block major; with a number behind it, a disk that nobody named.
pub(crate) const DISKS: &CStr = if DROP_IN { c"nullb" } else { c"rnullb" };

/// Puts the name of the module, which has to be a literal, between the tokens for a macro.
#[cfg(not(CONFIG_BLK_DEV_RUST_NULL_DROPIN))]
macro_rules! with_name {
    ($($macro:ident)::+ { $($before:tt)* } { $($after:tt)* }) => {
        ::kernel::$($macro)::+! { $($before)* "rnull_mod" $($after)* }
    };
}
#[cfg(CONFIG_BLK_DEV_RUST_NULL_DROPIN)]
macro_rules! with_name {
    ($($macro:ident)::+ { $($before:tt)* } { $($after:tt)* }) => {
        ::kernel::$($macro)::+! { $($before)* "null_blk" $($after)* }
    };
}

/// [`kernel::prelude::module!`] that knows the name.
macro_rules! module {
    (type: $type:ident, $($fields:tt)*) => {
        $crate::names::with_name! { prelude::module { type: $type, name: } { , $($fields)* } }
    };
}

/// [`kernel::module_params!`] that knows the name.
macro_rules! module_params {
    ($($lines:tt)*) => {
        $crate::names::with_name! { module_params { module: } { ; $($lines)* } }
    };
}

pub(crate) use {module, module_params, with_name};
