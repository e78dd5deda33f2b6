// SPDX-License-Identifier: GPL-2.0

//! An array or a pointer of a type is none of a supertype, which another value could be stored as.

use kernel::{
    prelude::*,
    sync::{rcu_box::RcuBox, rcu_ptr::RcuPtr},
    xarray::{Locked, XArray},
};

/// A function that accepts any reference.
type Any = for<'a> fn(&'a u8);

/// A function that keeps its argument.
type Keeps = fn(&'static u8);

#[cfg(bad)]
type Other = Keeps;
#[cfg(not(bad))]
type Other = Any;

pub fn array(xa: &XArray<KBox<Any>, Locked>) -> &XArray<KBox<Other>, Locked> {
    xa //~ ERROR mismatched types
}

pub fn rcu_array(xa: &XArray<RcuBox<Any>>) -> &XArray<RcuBox<Other>> {
    xa //~ ERROR mismatched types
}

pub fn pointer(ptr: &RcuPtr<RcuBox<Any>>) -> &RcuPtr<RcuBox<Other>> {
    ptr //~ ERROR mismatched types
}

pub fn unused(keeps: Keeps) {
    keeps(&0);
}
