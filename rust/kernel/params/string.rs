// SPDX-License-Identifier: GPL-2.0

//! Parameters that are strings.

use super::entry::ParamOps;
use crate::{
    bindings,
    prelude::*, //
};
use core::{
    array,
    cell::UnsafeCell, //
};

/// A parameter of type `string`.
///
/// Made by [`module_params!`](crate::module_params), where there is an example.
///
/// C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)
///
/// # Invariants
///
/// `c` points to a [`StringBuffer`] in static memory and has its size.
#[repr(transparent)]
pub struct StringParam {
    c: bindings::kparam_string,
}

// SAFETY: The buffer is written by C alone, and read in a way that allows for this.
unsafe impl Sync for StringParam {}

impl StringParam {
    #[doc(hidden)]
    pub const fn new(buffer: &'static StringBuffer) -> Self {
        // INVARIANT: By the type of the argument.
        Self {
            c: bindings::kparam_string {
                maxlen: STRING_SIZE as c_uint,
                string: buffer.0.get().cast(),
            },
        }
    }

    /// The value given by the user, or nothing.
    ///
    /// It is a copy, since the original can change while parameters are still being parsed, which
    /// is when checks run. What a check leaves running may even get a mixture of two values.
    pub fn get(&self) -> StringValue {
        let start = self.c.string.cast::<u8>();
        let byte = |at| {
            // SAFETY: By the type invariant, the buffer is as long.
            let byte = unsafe { start.add(at) };
            // SAFETY: By the type invariant, the buffer is static. C may be writing to it; so each
            // byte is read once, as `READ_ONCE` does.
            unsafe { byte.read_volatile() }
        };
        // INVARIANT: C writes nothing but strings that fit, so the last byte is always NUL.
        StringValue(array::from_fn(byte))
    }
}

// SAFETY: `param_ops_string` asks for a `struct kparam_string`.
unsafe impl ParamOps for StringParam {
    const OPERATIONS: *const bindings::kernel_param_ops = &raw const bindings::param_ops_string;
}

/// The size of a string parameter in bytes, with its NUL.
const STRING_SIZE: usize = 80;

/// The value of a [`StringParam`]: a string of at most 79 bytes.
///
/// # Invariants
///
/// Its last byte is NUL.
pub struct StringValue([u8; STRING_SIZE]);

impl core::ops::Deref for StringValue {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        // By the type invariant the default is never used.
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

/// Where C puts the value of a [`StringParam`].
#[doc(hidden)]
#[repr(transparent)]
pub struct StringBuffer(UnsafeCell<[u8; STRING_SIZE]>);

// SAFETY: The content is accessible through `StringParam` alone.
unsafe impl Sync for StringBuffer {}

impl StringBuffer {
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self(UnsafeCell::new([0; STRING_SIZE]))
    }
}
