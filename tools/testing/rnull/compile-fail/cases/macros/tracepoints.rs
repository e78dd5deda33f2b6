// SPDX-License-Identifier: GPL-2.0

//! `tracepoints!` puts no token of its caller inside `unsafe`.

//@ macro: tracepoints

#[cfg(bad)]
const unsafe fn needs_care() -> i32 {
    1
}

kernel::tracepoints! {
    prefix: rust_sample;

    /// An event of `samples/rust`.
    pub fn loaded(magic: i32) => (magic);
}

#[cfg(bad)]
mod bad {
    use super::needs_care;

    kernel::tracepoints! {
        prefix: rust_sample;

        pub fn loaded(_magic: i32) => (needs_care()); //~ ERROR E0133: call to unsafe function
    }
}
