// SPDX-License-Identifier: GPL-2.0

//! Module parameters, declared in one table.
//!
//! [`module_params!`](crate::module_params) makes a `static` of each line, which the module reads
//! with `get()`. The parser, the texts in `/sys/module/*/parameters` (mode 0444), and what `modinfo`
//! prints are those of the C types of the same names:
//!
//! | type           | `static` holds       | accepts                                 | shown     |
//! |----------------|----------------------|-----------------------------------------|-----------|
//! | `int`          | [`Param<i32>`]       | `kstrtoint`, base 0                     | decimal   |
//! | `uint`         | [`Param<u32>`]       | `kstrtouint`, base 0                    | decimal   |
//! | `ulong`        | [`Param<usize>`]     | `kstrtoul`, base 0                      | decimal   |
//! | `bool`         | [`Param<bool>`]      | `kstrtobool`; no value at all means yes | `Y`, `N`  |
//! | `int(check)`   | [`CheckedParam`]     | `kstrtoint`, base 10, then `check`      | decimal   |
//! | `string`       | [`StringParam`]      | up to 79 bytes                          | as it is  |
//!
//! Loading fails with `EINVAL` for a text that is no such value, with `ERANGE` for a number that
//! does not fit, with `ENOSPC` for a string that is too long. A parameter given twice has its last
//! value. Values do not change once the module runs, unless it does that itself.
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
use core::cell::UnsafeCell;

/// Declares the parameters of a module.
///
/// `module` is the name of the module, the same as in [`module!`]: when the module is built in, its
/// parameters are given as `name.parameter=value` on the kernel command line. Each line is a
/// parameter, its type as in the [table](crate::params), its default, which is constant, and what
/// `modinfo` says about it. The `static` has the name of the parameter in capitals.
///
/// Expand it once for each parameter, next to [`module!`] without `params`, in the same crate.
///
/// [`module!`]: crate::prelude::module
///
/// # Examples
///
/// ```
/// use kernel::{module_params, prelude::*};
///
/// fn one_to_three(value: i32) -> Result {
///     if (1..=3).contains(&value) {
///         Ok(())
///     } else {
///         Err(EINVAL)
///     }
/// }
///
/// module_params! {
///     module: "rust_doctest_params";
///
///     depth: uint = 64, "Depth of the queue. Default: 64";
///     /// Documentation is welcome.
///     pub(crate) gb: int = 250, "Size in GB";
///     nsec: ulong = 10_000, "Delay in ns";
///     blocking: bool = false, "May sleep";
///     mode: int(one_to_three) = 2, "1-low, 2-middle, 3-high";
///     label: string, "What it is called";
/// }
///
/// assert_eq!(DEPTH.get(), 64);
/// assert_eq!((GB.get(), NSEC.get(), BLOCKING.get(), MODE.get()), (250, 10_000, false, 2));
/// assert!(LABEL.get().is_empty());
///
/// // A value that makes no sense is replaced, for everyone to see.
/// DEPTH.set(DEPTH.get().min(32));
/// assert_eq!(DEPTH.get(), 32);
/// ```
#[macro_export]
macro_rules! module_params {
    (
        module: $module:literal;
        $(
            $(#[$meta:meta])*
            $vis:vis $name:ident: $type:ident $(($check:expr))? $(= $default:expr)?, $text:literal;
        )*
    ) => {
        $(
            $crate::module_params!(
                @static [$(#[$meta])*] [$vis] $name $type [$($check)?] [$($default)?]
            );
            $crate::module_params!(@entry $module $name);
            $crate::module_params!(
                @modinfo $module ::core::concat!("parm=", ::core::stringify!($name), ":", $text)
            );
            $crate::module_params!(@type $module $name $type [$($check)?]);
        )*
    };

    // The variable itself.
    (@static [$($meta:tt)*] [$vis:vis] $name:ident int [] [$default:expr]) => {
        $crate::module_params!(@param [$($meta)*] [$vis] $name i32, $default);
    };
    (@static [$($meta:tt)*] [$vis:vis] $name:ident uint [] [$default:expr]) => {
        $crate::module_params!(@param [$($meta)*] [$vis] $name u32, $default);
    };
    (@static [$($meta:tt)*] [$vis:vis] $name:ident ulong [] [$default:expr]) => {
        $crate::module_params!(@param [$($meta)*] [$vis] $name usize, $default);
    };
    (@static [$($meta:tt)*] [$vis:vis] $name:ident bool [] [$default:expr]) => {
        $crate::module_params!(@param [$($meta)*] [$vis] $name bool, $default);
    };
    (@static [$($meta:tt)*] [$vis:vis] $name:ident int [$check:expr] [$default:expr]) => {
        $crate::macros::paste! {
            $($meta)*
            $vis static [<$name:upper>]: $crate::params::CheckedParam =
                $crate::params::CheckedParam::new($default, $check);
        }
    };
    (@static [$($meta:tt)*] [$vis:vis] $name:ident string [] []) => {
        $crate::macros::paste! {
            $($meta)*
            $vis static [<$name:upper>]: $crate::params::StringParam = {
                static BUFFER: $crate::params::StringBuffer = $crate::params::StringBuffer::new();
                $crate::params::StringParam::new(&BUFFER)
            };
        }
    };
    (@param [$($meta:tt)*] [$vis:vis] $name:ident $type:ty, $default:expr) => {
        $crate::macros::paste! {
            $($meta)*
            $vis static [<$name:upper>]: $crate::params::Param<$type> =
                $crate::params::Param::<$type>::new($default);
        }
    };

    // What the kernel reads to find it.
    (@entry $module:literal $name:ident) => {
        $crate::macros::paste! {
            const _: () = {
                #[cfg(MODULE)]
                const NAME: &str = ::core::concat!(::core::stringify!($name), "\0");
                #[cfg(not(MODULE))]
                const NAME: &str = ::core::concat!($module, ".", ::core::stringify!($name), "\0");

                #[cfg(MODULE)]
                const OWNER: *mut $crate::bindings::module =
                    &raw mut $crate::bindings::__this_module;
                #[cfg(not(MODULE))]
                const OWNER: *mut $crate::bindings::module = ::core::ptr::null_mut();

                #[link_section = "__param"]
                #[used(compiler)]
                static ENTRY: $crate::params::Entry =
                    $crate::params::Entry::new(NAME, OWNER, &[<$name:upper>]);
            };
        }
    };

    // What modinfo prints. A checked integer has no type there, as in C.
    (@type $module:literal $name:ident $type:ident [$check:expr]) => {};
    (@type $module:literal $name:ident $type:ident []) => {
        $crate::module_params!(
            @modinfo $module
            ::core::concat!("parmtype=", ::core::stringify!($name), ":", ::core::stringify!($type))
        );
    };
    (@modinfo $module:literal $text:expr) => {
        const _: () = {
            #[cfg(MODULE)]
            const TEXT: &str = ::core::concat!($text, "\0");
            #[cfg(not(MODULE))]
            const TEXT: &str = ::core::concat!($module, ".", $text, "\0");

            #[link_section = ".modinfo"]
            #[used(compiler)]
            static INFO: [u8; TEXT.len()] = $crate::params::to_array(TEXT);
        };
    };
}

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
        unsafe impl Described for Param<$type> {
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

        // SAFETY: `text` is NUL-terminated where `kstrtoint` gets it, by the safety requirements.
        if text.is_null() || unsafe { bindings::kstrtoint(text, 10, &mut value) } != 0 {
            return EINVAL.to_errno();
        }
        // SAFETY: By the safety requirements; `Described` gives `CheckedParam` this operation, so
        // the argument is one, in static memory.
        let this = unsafe { &*(*entry).__bindgen_anon_1.arg.cast::<Self>() };
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
unsafe impl Described for CheckedParam {
    const OPERATIONS: *const bindings::kernel_param_ops = &bindings::kernel_param_ops {
        flags: 0,
        set: Some(Self::parse),
        get: Some(bindings::param_get_int),
        free: None,
    };
}

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

// SAFETY: The buffer is written by C alone, while it parses parameters, one at a time, and never
// again after; code of the module that runs then or later only reads.
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
    /// is when checks run.
    pub fn get(&self) -> StringValue {
        // INVARIANT: C writes nothing but strings that fit, and the buffer starts as one.
        // SAFETY: The buffer is static, by the type invariant, and nobody writes to it now: code of
        // the module runs after parsing or, in a check, between two parameters.
        StringValue(unsafe { self.c.string.cast::<[u8; STRING_SIZE]>().read() })
    }
}

// SAFETY: `param_ops_string` asks for a `struct kparam_string`.
unsafe impl Described for StringParam {
    const OPERATIONS: *const bindings::kernel_param_ops = &raw const bindings::param_ops_string;
}

/// The size of a string parameter in bytes, with its NUL.
const STRING_SIZE: usize = 80;

/// The value of a [`StringParam`]: a string of at most 79 bytes.
///
/// # Invariants
///
/// There is a NUL in it.
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

/// A variable that C can set and show.
///
/// # Safety
///
/// The operations must work on a pointer to a static `Self`.
#[doc(hidden)]
pub unsafe trait Described: Sync + 'static {
    /// How C does that.
    const OPERATIONS: *const bindings::kernel_param_ops;
}

/// An element of the section `__param`.
#[doc(hidden)]
#[repr(transparent)]
pub struct Entry(bindings::kernel_param);

// SAFETY: C reads it, Rust does not, nobody writes.
unsafe impl Sync for Entry {}

impl Entry {
    #[doc(hidden)]
    pub const fn new<P: Described>(
        name: &'static str,
        owner: *mut bindings::module,
        variable: &'static P,
    ) -> Self {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("the name of a parameter contains a NUL"),
        };
        Self(bindings::kernel_param {
            name: as_char_ptr_in_const_context(name),
            mod_: owner,
            ops: P::OPERATIONS,
            perm: 0o444,
            level: -1,
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
