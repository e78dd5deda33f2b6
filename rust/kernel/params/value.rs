// SPDX-License-Identifier: GPL-2.0

//! Parameters that are numbers or booleans.

use super::entry::ParamOps;
use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        AtomicType,
        Relaxed, //
    },
};

/// A parameter of type `int`, `uint`, `ulong` or `bool`.
///
/// Made by [`module_params!`](crate::module_params), where there is an example.
///
/// C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)
#[repr(transparent)]
pub struct Param<T: AtomicType>(Atomic<T>);

macro_rules! impl_param {
    ($type:ty, $operations:ident) => {
        impl Param<$type> {
            #[doc(hidden)]
            pub const fn new(default: $type) -> Self {
                Self(Atomic::new(default))
            }

            /// The value given by the user, or the default.
            #[inline]
            pub fn get(&self) -> $type {
                self.0.load(Relaxed)
            }

            /// Replaces the value, also where the user sees it.
            #[inline]
            pub fn set(&self, value: $type) {
                self.0.store(value, Relaxed)
            }
        }

        // SAFETY: The operations access a value of the C type that is `$type`, which is what an
        // atomic is in memory.
        unsafe impl ParamOps for Param<$type> {
            const OPERATIONS: *const bindings::kernel_param_ops = &raw const bindings::$operations;
        }
    };
}

impl_param!(i32, param_ops_int);
impl_param!(u32, param_ops_uint);
impl_param!(usize, param_ops_ulong);
impl_param!(bool, param_ops_bool);

/// A parameter of type `int` with a check.
///
/// Made by [`module_params!`](crate::module_params), where there is an example.
///
/// C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)
///
/// # Invariants
///
/// The value comes first in memory, where `param_get_int` looks for it.
#[repr(C)]
pub struct CheckedParam {
    value: Param<i32>,
    check: fn(i32) -> Result,
}

impl CheckedParam {
    #[doc(hidden)]
    pub const fn new(default: i32, check: fn(i32) -> Result) -> Self {
        // INVARIANT: By the order of the fields in `repr(C)`.
        Self {
            value: Param::<i32>::new(default),
            check,
        }
    }

    /// The value given by the user, which passed the check, or the default.
    #[inline]
    pub fn get(&self) -> i32 {
        self.value.get()
    }

    /// Replaces the value without asking the check.
    #[inline]
    pub fn set(&self, value: i32) {
        self.value.set(value)
    }

    /// Parses, checks and stores a value.
    ///
    /// # Safety
    ///
    /// `text` must be null or NUL-terminated, `entry` describe a `CheckedParam`.
    unsafe extern "C" fn parse(text: *const c_char, entry: *const bindings::kernel_param) -> c_int {
        let mut value = 0;

        // SAFETY: By the safety requirements, `text` is NUL-terminated where `kstrtoint` gets it.
        if text.is_null() || unsafe { bindings::kstrtoint(text, 10, &mut value) } != 0 {
            return EINVAL.to_errno();
        }
        // SAFETY: By the safety requirements, the entry is valid.
        let argument = unsafe { &(*entry).__bindgen_anon_1 };
        // SAFETY: A parameter with operations of its own has an argument.
        let argument = unsafe { argument.arg };
        // SAFETY: By the safety requirements; `ParamOps` gives `CheckedParam` this operation, so
        // the argument is one, in static memory.
        let this = unsafe { &*argument.cast::<Self>() };
        match (this.check)(value) {
            Ok(()) => {
                this.set(value);
                0
            }
            Err(error) => error.to_errno(),
        }
    }
}

// SAFETY: `parse` asks for a `CheckedParam`, `param_get_int` for an `int`, which is its first field
// by the type invariant.
unsafe impl ParamOps for CheckedParam {
    // The level of drivers: a check may do what needs a running kernel.
    const LEVEL: i8 = 6;

    const OPERATIONS: *const bindings::kernel_param_ops = &bindings::kernel_param_ops {
        flags: 0,
        set: Some(Self::parse),
        get: Some(bindings::param_get_int),
        free: None,
    };
}
