// SPDX-License-Identifier: GPL-2.0

//! Classes of devices: what a device is for, wherever it is connected.
//!
//! A driver registers a [`Class`], `/sys/class/NAME`, and adds a [`ClassDevice`] for each thing
//! that it makes available. Such a device has [`Attribute`] files, and a character device if it has
//! a minor number.
//!
//! ```text
//!     Registration          /sys/class/example/          until dropped, and no device is left
//!       ClassDevice<T>        example0/                  until dropped
//!         Attribute<T>          model                    a read calls `show` with `&T`
//!                           /dev/example0                an open file keeps the `T`
//! ```
//!
//! The data of a device is counted: a task may have the file of a device open after the device was
//! removed. Its calls fail with `ENODEV` then.
//!
//! C header: [`include/linux/device/class.h`](srctree/include/linux/device/class.h)

// Not used in all configurations.
#![allow(dead_code)]

mod device;

mod files;

mod inner;

mod class;

mod attribute;

mod parent;

#[cfg(CONFIG_BLOCK)]
pub(crate) use self::attribute::Table;
pub use self::{
    attribute::Attribute,
    class::{
        Class,
        Registration, //
    },
    device::ClassDevice,
    inner::{
        ClassDeviceOptions,
        Operations, //
    },
    parent::Parent, //
};

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
