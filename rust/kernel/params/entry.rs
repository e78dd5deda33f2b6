// SPDX-License-Identifier: GPL-2.0

//! What the kernel knows about a parameter.

use crate::{
    bindings,
    prelude::*,
    str::as_char_ptr_in_const_context, //
};

/// A variable that C can set and show.
///
/// # Safety
///
/// The operations must work on a pointer to a static `Self`.
#[doc(hidden)]
pub unsafe trait ParamOps: Sync + 'static {
    /// How C does that.
    const OPERATIONS: *const bindings::kernel_param_ops;

    /// When, if the module is built in: with the initcalls of this level, or at -1 before all.
    const LEVEL: i8 = -1;
}

/// An element of the section `__param`.
#[doc(hidden)]
#[repr(transparent)]
pub struct Entry(bindings::kernel_param);

// SAFETY: C reads it, Rust does not, and it is never written.
unsafe impl Sync for Entry {}

impl Entry {
    #[doc(hidden)]
    pub const fn new<P: ParamOps>(
        name: &'static str,
        owner: &'static ThisModule,
        variable: &'static P,
    ) -> Self {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("the name of a parameter contains a NUL"),
        };
        Self(bindings::kernel_param {
            name: as_char_ptr_in_const_context(name),
            mod_: owner.as_ptr(),
            ops: P::OPERATIONS,
            perm: 0o444,
            level: P::LEVEL,
            flags: 0,
            __bindgen_anon_1: bindings::kernel_param__bindgen_ty_1 {
                arg: core::ptr::from_ref(variable).cast_mut().cast(),
            },
        })
    }
}

/// Copies a text that ends in NUL into the element of a section.
#[doc(hidden)]
pub const fn to_array<const N: usize>(text: &str) -> [u8; N] {
    let text = text.as_bytes();
    let mut array = [0; N];
    let mut i = 0;

    while i < N {
        assert!(
            (text[i] == 0) == (i == N - 1),
            "a description contains a NUL"
        );
        array[i] = text[i];
        i += 1;
    }
    array
}
