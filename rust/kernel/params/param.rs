// SPDX-License-Identifier: GPL-2.0

//! The types of module parameters.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)

use crate::{
    bindings,
    prelude::*,
    str::as_char_ptr_in_const_context,
    sync::atomic::{
        Atomic,
        AtomicType,
        Relaxed, //
    },
};
use core::{
    array,
    cell::UnsafeCell, //
};

/// A parameter of type `int`, `uint`, `ulong` or `bool`.
///
/// Declared by [`module_params!`](crate::module_params); see there for an example.
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

            /// Returns the value given by the user, or the default.
            #[inline]
            pub fn get(&self) -> $type {
                self.0.load(Relaxed)
            }

            /// Replaces the value, also in sysfs.
            #[inline]
            pub fn set(&self, value: $type) {
                self.0.store(value, Relaxed)
            }
        }

        // SAFETY: The operations access a value of the C type that corresponds to `$type`, which
        // has the layout of the atomic.
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
/// Declared by [`module_params!`](crate::module_params); see there for an example.
///
/// C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)
///
/// # Invariants
///
/// The value is the first field in memory, where `param_get_int` reads it.
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

    /// Returns the value given by the user, which passed the check, or the default.
    #[inline]
    pub fn get(&self) -> i32 {
        self.value.get()
    }

    /// Replaces the value without calling the check.
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

        // SAFETY: By the safety requirements, `text` is NUL-terminated, as it is not null here.
        if text.is_null() || unsafe { bindings::kstrtoint(text, 10, &mut value) } != 0 {
            return EINVAL.to_errno();
        }
        // SAFETY: By the safety requirements, the entry is valid.
        let argument = unsafe { &(*entry).__bindgen_anon_1 };
        // SAFETY: A parameter with its own operations has an argument.
        let argument = unsafe { argument.arg };
        // SAFETY: By the safety requirements; `ParamOps` assigns this operation to `CheckedParam`,
        // so the argument points to one in static memory.
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

// SAFETY: `parse` requires a `CheckedParam`, `param_get_int` requires an `int`, which is its first
// field by the type invariant.
unsafe impl ParamOps for CheckedParam {
    // The initcall level of drivers: a check may depend on subsystems that are initialised by then.
    const LEVEL: i8 = 6;

    const OPERATIONS: *const bindings::kernel_param_ops = &bindings::kernel_param_ops {
        flags: 0,
        set: Some(Self::parse),
        get: Some(bindings::param_get_int),
        free: None,
    };
}

/// A parameter of type `string`.
///
/// Declared by [`module_params!`](crate::module_params); see there for an example.
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

// SAFETY: The buffer is written by C only, and read in a way that allows for concurrent writes.
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

    /// Returns the value given by the user, or an empty string.
    ///
    /// It is a copy, since the original can change while parameters are still being parsed, which
    /// is when checks run. A thread that a check has started may even read a mixture of two values.
    pub fn get(&self) -> StringValue {
        let start = self.c.string.cast::<u8>();
        let byte = |at| {
            // SAFETY: By the type invariant, the buffer has this length.
            let byte = unsafe { start.add(at) };
            // SAFETY: By the type invariant, the buffer is static. C may be writing to it, so each
            // byte is read once, as `READ_ONCE` does.
            unsafe { byte.read_volatile() }
        };
        // INVARIANT: C writes only strings that fit, so the last byte is always NUL.
        StringValue(array::from_fn(byte))
    }
}

// SAFETY: `param_ops_string` requires a `struct kparam_string`.
unsafe impl ParamOps for StringParam {
    const OPERATIONS: *const bindings::kernel_param_ops = &raw const bindings::param_ops_string;
}

/// The size of a string parameter in bytes, including its NUL.
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

/// The buffer to which C writes the value of a [`StringParam`].
#[doc(hidden)]
#[repr(transparent)]
pub struct StringBuffer(UnsafeCell<[u8; STRING_SIZE]>);

// SAFETY: The content is accessed through `StringParam` only.
unsafe impl Sync for StringBuffer {}

impl StringBuffer {
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self(UnsafeCell::new([0; STRING_SIZE]))
    }
}

/// A variable that C can set and show.
///
/// # Safety
///
/// The operations must work on a pointer to a static `Self`.
#[doc(hidden)]
pub unsafe trait ParamOps: Sync + 'static {
    /// The C operations that do that.
    const OPERATIONS: *const bindings::kernel_param_ops;

    /// The initcall level at which a parameter of built-in code is parsed; -1 is before all
    /// initcalls.
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

/// Copies a NUL-terminated text into an array, for an element of a section.
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
