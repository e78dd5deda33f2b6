// SPDX-License-Identifier: GPL-2.0

//! The names that users see: those of rnvme, or those of C's `nvme`.
//!
//! With `CONFIG_BLK_DEV_RUST_NVME_DROPIN` the driver replaces C's, so a kernel has only one of the
//! two, and it takes all controllers.

use kernel::prelude::*;

/// Whether the driver has the names of C's.
pub(crate) const DROP_IN: bool = cfg!(CONFIG_BLK_DEV_RUST_NVME_DROPIN);

/// The name of the driver on the bus.
pub(crate) const DRIVER: &CStr = if DROP_IN { c"nvme" } else { c"rnvme" };

/// What the names of controllers and disks begin with.
pub(crate) const CONTROLLERS: &str = if DROP_IN { "nvme" } else { "rnvme" };

/// What the names of the character devices of namespaces begin with.
pub(crate) const GENERIC: &str = if DROP_IN { "ng" } else { "rng" };

/// The name of the class of controllers.
pub(crate) const CONTROLLER_CLASS: &CStr = DRIVER;

/// The name of the class of subsystems.
pub(crate) const SUBSYSTEM_CLASS: &CStr = if DROP_IN {
    c"nvme-subsystem"
} else {
    c"rnvme-subsystem"
};

/// The name of the class of namespaces.
pub(crate) const GENERIC_CLASS: &CStr = if DROP_IN {
    c"nvme-generic"
} else {
    c"rnvme-generic"
};

/// Passes the name of the module, which has to be a literal, to a macro.
#[cfg(not(CONFIG_BLK_DEV_RUST_NVME_DROPIN))]
macro_rules! with_name {
    ($($macro:ident)::+ { $($before:tt)* } { $($after:tt)* }) => {
        ::kernel::$($macro)::+! { $($before)* "rnvme_mod" $($after)* }
    };
}
#[cfg(CONFIG_BLK_DEV_RUST_NVME_DROPIN)]
macro_rules! with_name {
    ($($macro:ident)::+ { $($before:tt)* } { $($after:tt)* }) => {
        ::kernel::$($macro)::+! { $($before)* "nvme" $($after)* }
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

pub(crate) use {module, module_params, with_name};
