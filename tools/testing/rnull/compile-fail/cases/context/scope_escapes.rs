// SPDX-License-Identifier: GPL-2.0

//! The proof that one may sleep does not outlive the callback.

use kernel::block::mq::{Idle, Operations, Scope};

pub fn case<'q, T: Operations>(rq: &Idle<'q, T>) {
    #[cfg(bad)]
    let _: Scope<'static, T::Context> = rq.scope(); //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    let _: Scope<'q, T::Context> = rq.scope();
}
