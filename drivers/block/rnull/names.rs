// SPDX-License-Identifier: GPL-2.0

//! The names that users see: those of rnull, or those of C's `null_blk`.
//!
//! With `CONFIG_BLK_DEV_RUST_NULL_DROPIN` the driver replaces C's, so a kernel has only one of the
//! two. Scripts written for `null_blk` run unchanged.

use kernel::prelude::*;

const DROP_IN: bool = cfg!(CONFIG_BLK_DEV_RUST_NULL_DROPIN);

/// The name of the configfs subsystem.
pub(crate) const SUBSYSTEM: &CStr = if DROP_IN { c"nullb" } else { c"rnull" };

/// The name of the block major, and with a number the default name of a disk.
pub(crate) const DISKS: &CStr = if DROP_IN { c"nullb" } else { c"rnullb" };

/// Passes the name of the module, which has to be a literal, to a macro.
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

/// [`kernel::prelude::module!`] with the name.
macro_rules! module {
    (type: $type:ident, $($fields:tt)*) => {
        $crate::names::with_name! { prelude::module { type: $type, name: } { , $($fields)* } }
    };
}

/// [`kernel::module_params!`] with the name.
macro_rules! module_params {
    ($($lines:tt)*) => {
        $crate::names::with_name! { module_params { module: } { ; $($lines)* } }
    };
}

/// [`kernel::tracepoints!`] with the prefix, which is that of the names in `rnull_events.h`.
#[cfg(not(CONFIG_BLK_DEV_RUST_NULL_DROPIN))]
macro_rules! tracepoints {
    ($($lines:tt)*) => {
        ::kernel::tracepoints! { prefix: rnullb; $($lines)* }
    };
}
#[cfg(CONFIG_BLK_DEV_RUST_NULL_DROPIN)]
macro_rules! tracepoints {
    ($($lines:tt)*) => {
        ::kernel::tracepoints! { prefix: nullb; $($lines)* }
    };
}

pub(crate) use {module, module_params, tracepoints, with_name};
