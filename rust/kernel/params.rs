// SPDX-License-Identifier: GPL-2.0

//! Module parameters, declared in one table.
//!
//! [`module_params!`](crate::module_params) declares a `static` for each line, whose value the
//! module reads with `get()`. The parser, the text in `/sys/module/*/parameters` (mode 0444), and
//! the output of `modinfo` are those of the C types of the same names:
//!
//! | type           | `static` holds       | accepts                                 | shown     |
//! |----------------|----------------------|-----------------------------------------|-----------|
//! | `int`          | [`Param<i32>`]       | `kstrtoint`, base 0                     | decimal   |
//! | `uint`         | [`Param<u32>`]       | `kstrtouint`, base 0                    | decimal   |
//! | `ulong`        | [`Param<usize>`]     | `kstrtoul`, base 0                      | decimal   |
//! | `bool`         | [`Param<bool>`]      | `kstrtobool`; no value means true       | `Y`, `N`  |
//! | `int(check)`   | [`CheckedParam`]     | `kstrtoint`, base 10, then `check`      | decimal   |
//! | `string`       | [`StringParam`]      | up to 79 bytes                          | unchanged |
//!
//! The `params` of [`module!`](crate::prelude::module) are integers and booleans that sysfs does
//! not show. With strings, checks, modes, and the parsers of C there, this module would not be
//! needed.
//!
//! Loading fails with `EINVAL` if the text is not such a value, `ERANGE` if a number does not fit
//! (`EINVAL` if it has a check), and `ENOSPC` if a string is too long. If a parameter is given
//! twice, the last value is used. Values do not change after loading, unless the module changes
//! them.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)

mod param;

pub use self::param::{
    to_array,
    CheckedParam,
    Entry,
    Param,
    ParamOps,
    StringBuffer,
    StringParam,
    StringValue, //
};

/// Declares the parameters of a module.
///
/// `module` is the name of the module, the same as in [`module!`]: if the module is built in, its
/// parameters are given as `name.parameter=value` on the kernel command line. Each line declares a
/// parameter with its type from the [table](crate::params), its default, which is constant, and its
/// description for `modinfo`. The `static` has the name of the parameter in capitals. It accepts
/// documentation, but no other attribute: the compiler does not detect unsafe attributes in a
/// macro.
///
/// Declare each parameter only once, next to [`module!`] without `params`, in the same crate.
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
/// // Replaces an unsuitable value, also in sysfs.
/// DEPTH.set(DEPTH.get().min(32));
/// assert_eq!(DEPTH.get(), 32);
/// ```
// `LocalModule` is the type in the crate of the caller.
#[allow(clippy::crate_in_macro_def)]
#[macro_export]
macro_rules! module_params {
    (
        module: $module:literal;
        $(
            $(#[doc = $doc:literal])*
            $vis:vis $name:ident: $type:ident $(($check:expr))? $(= $default:expr)?, $text:literal;
        )*
    ) => {
        $(
            $crate::module_params!(
                @static [$(#[doc = $doc])*] [$vis] $name $type [$($check)?] [$($default)?]
            );
            $crate::module_params!(@entry $module $name);
            $crate::module_params!(
                @modinfo $module ::core::concat!("parm=", ::core::stringify!($name), ":", $text)
            );
            $crate::module_params!(@type $module $name $type [$($check)?]);
        )*
    };

    // The variable.
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

    // The entry in the section `__param`, where the kernel finds the parameter.
    (@entry $module:literal $name:ident) => {
        $crate::macros::paste! {
            const _: () = {
                #[cfg(MODULE)]
                const NAME: &str = ::core::concat!(::core::stringify!($name), "\0");
                #[cfg(not(MODULE))]
                const NAME: &str = ::core::concat!($module, ".", ::core::stringify!($name), "\0");

                #[link_section = "__param"]
                #[used(compiler)]
                static ENTRY: $crate::params::Entry = $crate::params::Entry::new(
                    NAME,
                    $crate::module::this_module::<crate::LocalModule>(),
                    &[<$name:upper>],
                );
            };
        }
    };

    // The text for `modinfo`. A checked integer has no type there, as in C.
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
