// SPDX-License-Identifier: GPL-2.0

//! A driver that must not sleep has no proof that it may.

use kernel::block::mq::{Atomic, Idle, Operations, Scope, Sleepable};

fn sleeps(_: Scope<'_, Sleepable>) {}

pub fn may<T: Operations<Context = Sleepable>>(rq: &Idle<'_, T>) {
    sleeps(rq.scope());
}

pub fn must_not<T: Operations<Context = Atomic>>(rq: &Idle<'_, T>) {
    #[cfg(bad)]
    sleeps(rq.scope()); //~ ERROR E0308: mismatched types
    let _ = rq.scope();
}
