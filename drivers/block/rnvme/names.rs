// SPDX-License-Identifier: GPL-2.0

//! The names that a user sees.

/// What the names of controllers and disks begin with.
macro_rules! prefix {
    () => {
        "rnvme"
    };
}

/// What the names of the character devices of namespaces begin with.
macro_rules! generic_prefix {
    () => {
        "rng"
    };
}

pub(crate) use generic_prefix;
pub(crate) use prefix;
