// SPDX-License-Identifier: GPL-2.0

//! A request that was not started does not outlive its callback.

use kernel::block::mq::{Idle, Operations};

pub fn returned<'q, T: Operations>(rq: Idle<'q, T>) {
    #[cfg(bad)]
    let _: Idle<'static, T> = rq; //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    let _: Idle<'q, T> = rq;
}

pub fn stored<T: Operations>(rq: Idle<'_, T>, slot: &mut Option<Idle<'static, T>>) {
    #[cfg(bad)]
    slot.replace(rq); //~ ERROR borrowed data escapes outside of function
    #[cfg(not(bad))]
    drop((rq, slot.take()));
}
