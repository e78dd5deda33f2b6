// SPDX-License-Identifier: GPL-2.0

//! A tracepoint takes no raw pointer, nor a reference to any type: C could not rely on either.

kernel::tracepoints! {
    prefix: rust_sample;

    pub fn loaded(magic: &i32) => (*magic);
}

#[cfg(bad)]
mod bad {
    kernel::tracepoints! { //~ ERROR E0277: the trait bound `*mut i32: TraceArg` is not satisfied
        prefix: rust_sample;

        pub fn loaded(magic: *mut i32) => (magic);
    }
}

#[cfg(bad)]
mod worse {
    kernel::tracepoints! { //~ ERROR E0277: the trait bound `&i32: TraceArg` is not satisfied
        prefix: rust_sample;

        pub fn loaded(magic: &i32) => (magic);
    }
}
