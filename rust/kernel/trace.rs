// SPDX-License-Identifier: GPL-2.0

//! Tracepoints that a driver fires without `unsafe`.
//!
//! The events are defined in a C header with `TRACE_EVENT`, as those of a driver in C are. One C
//! file of the driver includes the header after `CREATE_TRACE_POINTS` and
//! `CREATE_RUST_TRACE_POINTS`, and the bindings include it, too. [`tracepoints!`] declares a Rust
//! function for each event. See `Documentation/block/rust-drivers.rst`.
//!
//! [`declare_trace!`] makes functions that are unsafe to call, since their arguments may be
//! pointers. Here the arguments are of types that implement [`TraceArg`], so a function is safe.
//!
//! The header is part of what makes this safe: its `TP_fast_assign` may rely only on what
//! [`TraceArg`] states of its arguments. That holds for each header in the bindings whose C file
//! defines `CREATE_RUST_TRACE_POINTS`, since a driver may name any event. The others of these, in
//! `rust_sample` and `rust_binder`, take integers, or pointers that are no [`TraceArg`].
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)
//!
//! [`tracepoints!`]: crate::tracepoints
//! [`declare_trace!`]: crate::declare_trace

use crate::prelude::*;

/// A value that a tracepoint accepts.
///
/// | Rust            | C                                                                          |
/// |-----------------|----------------------------------------------------------------------------|
/// | an integer      | the integer type of that size                                              |
/// | `bool`          | `bool`                                                                     |
/// | [`&CStr`](CStr) | `const char *`: a string that ends with NUL                                |
/// | `&Request<T>`   | `struct request *`: owned by the driver, with a hardware queue; its queue  |
/// |                 | has no disk if the request is one of a `PassthroughQueue`                  |
/// | `BlkResult`     | `u8`: a `blk_status_t`                                                     |
/// | `ZoneCondition` | `enum blk_zone_cond`                                                       |
/// | `&ZoneReporter` | `struct gendisk *`: with a name                                            |
///
/// What a pointer refers to is valid while the probes run, which do not change it.
///
/// # Safety
///
/// What [`Self::into_raw`] returns is as the table says for as long as the type is valid, which has
/// the lifetime of what is borrowed.
pub unsafe trait TraceArg: Copy {
    /// The type in the bindings.
    type Raw;

    /// Converts the value to that for C.
    fn into_raw(self) -> Self::Raw;
}

macro_rules! impl_trace_arg {
    ($($type:ty),*) => {$(
        // SAFETY: It is a plain value.
        unsafe impl TraceArg for $type {
            type Raw = Self;

            #[inline]
            fn into_raw(self) -> Self {
                self
            }
        }
    )*};
}

impl_trace_arg!(bool, u8, i8, u16, i16, u32, i32, u64, i64, usize, isize);

// SAFETY: The string is borrowed, and ends with NUL.
unsafe impl TraceArg for &CStr {
    type Raw = *const c_char;

    #[inline]
    fn into_raw(self) -> *const c_char {
        self.as_char_ptr()
    }
}

/// The arguments of a tracepoint: a tuple of up to three [`TraceArg`]s.
#[doc(hidden)]
pub trait TraceArgs {
    /// The function that runs the probes.
    type Probes;

    /// Runs the probes. Always inlined, so that the call is direct, and is not subject to
    /// `CONFIG_CFI`.
    ///
    /// # Safety
    ///
    /// `probes` is sound to call with any arguments that are as [`TraceArg`] states.
    unsafe fn pass_to(self, probes: Self::Probes);
}

impl<A: TraceArg> TraceArgs for (A,) {
    type Probes = unsafe extern "C" fn(A::Raw);

    #[inline(always)]
    unsafe fn pass_to(self, probes: Self::Probes) {
        let (a,) = self;
        // SAFETY: By the safety requirement. What the arguments borrow is borrowed until this
        // function returns, since their types are its parameters.
        unsafe { probes(a.into_raw()) }
    }
}

impl<A: TraceArg, B: TraceArg> TraceArgs for (A, B) {
    type Probes = unsafe extern "C" fn(A::Raw, B::Raw);

    #[inline(always)]
    unsafe fn pass_to(self, probes: Self::Probes) {
        let (a, b) = self;
        // SAFETY: By the safety requirement. What the arguments borrow is borrowed until this
        // function returns, since their types are its parameters.
        unsafe { probes(a.into_raw(), b.into_raw()) }
    }
}

impl<A: TraceArg, B: TraceArg, C: TraceArg> TraceArgs for (A, B, C) {
    type Probes = unsafe extern "C" fn(A::Raw, B::Raw, C::Raw);

    #[inline(always)]
    unsafe fn pass_to(self, probes: Self::Probes) {
        let (a, b, c) = self;
        // SAFETY: By the safety requirement. What the arguments borrow is borrowed until this
        // function returns, since their types are its parameters.
        unsafe { probes(a.into_raw(), b.into_raw(), c.into_raw()) }
    }
}

/// Keeps the code of a tracepoint that is on out of the way of one that is off.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn cold(fire: impl FnOnce()) {
    fire();
}

/// Checks the types of arguments where there are no tracepoints.
#[doc(hidden)]
pub fn check(_: impl TraceArgs) {}

/// Declares a function for each of a driver's tracepoints.
///
/// The function `name` fires the event `PREFIX_name` with up to three arguments, those after the
/// arrow. Their number and types are those of the event's `TP_PROTO`: see [`TraceArg`]. The
/// compiler compares them. The prefix is usually the name of the system, `TRACE_SYSTEM`; the names
/// of events are unique in the kernel.
///
/// While the event is off, the function is a `nop` with `CONFIG_JUMP_LABEL`, else a load and a
/// test, and the arguments after the arrow are not evaluated. So a parameter should be something
/// that the caller has at hand, such as a reference.
///
/// The function does nothing without `CONFIG_TRACEPOINTS`. An event that the header has only with
/// further options has them in `#[cfg(...)]`; without them its function does nothing, either.
///
/// The function `name_enabled` returns whether the event is on, at the same cost. With it, code
/// that must be fast can have a second version with the events, which is out of line: then the
/// values that are used after an event need not be saved from it.
///
/// The bindings have the events of a header that `rust/bindings/bindings_helper.h` includes.
#[macro_export]
macro_rules! tracepoints {
    (
        prefix: $prefix:ident;
        $(
            $(#[doc = $doc:literal])*
            $(#[cfg($($cfg:tt)*)])?
            $vis:vis fn $name:ident($($param:ident: $type:ty),* $(,)?) => ($($arg:expr),+ $(,)?);
        )*
    ) => {$(
        $(#[doc = $doc])*
        #[inline(always)]
        $vis fn $name($($param: $type),*) {
            #[cfg(all(CONFIG_TRACEPOINTS $(, $($cfg)*)?))]
            $crate::macros::paste! {
                if [<$name _enabled>]() {
                    $crate::trace::cold(move || {
                        let args = ($($arg,)+);
                        let probes = $crate::bindings::[<rust_do_trace_ $prefix _ $name>];
                        // SAFETY: The headers in the bindings rely only on what `TraceArg` states.
                        unsafe { $crate::trace::TraceArgs::pass_to(args, probes) };
                    });
                }
            }
            #[cfg(not(all(CONFIG_TRACEPOINTS $(, $($cfg)*)?)))]
            let _ = move || $crate::trace::check(($($arg,)+));
        }

        $crate::macros::paste! {
            #[doc = "Returns whether the event of the function without `_enabled` is on."]
            #[allow(dead_code)]
            #[inline(always)]
            $vis fn [<$name _enabled>]() -> bool {
                // SAFETY: The bindings declare the key of a tracepoint that C defines.
                #[cfg(all(CONFIG_TRACEPOINTS $(, $($cfg)*)?))]
                return unsafe {
                    $crate::jump_label::static_branch_unlikely!(
                        $crate::bindings::[<__tracepoint_ $prefix _ $name>],
                        $crate::bindings::tracepoint,
                        key
                    )
                };
                #[cfg(not(all(CONFIG_TRACEPOINTS $(, $($cfg)*)?)))]
                false
            }
        }
    )*};
}
