// SPDX-License-Identifier: GPL-2.0

//! A request that was not started does not outlive the callback.

use kernel::block::mq::{IdleRequest, Operations};

pub fn returned<'q, T: Operations>(rq: IdleRequest<'q, T>) {
    #[cfg(bad)]
    let _: IdleRequest<'static, T> = rq; //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    let _: IdleRequest<'q, T> = rq;
}

pub fn stored<T: Operations>(rq: IdleRequest<'_, T>, slot: &mut Option<IdleRequest<'static, T>>) {
    #[cfg(bad)]
    slot.replace(rq); //~ ERROR borrowed data escapes outside of function
    #[cfg(not(bad))]
    drop((rq, slot.take()));
}
