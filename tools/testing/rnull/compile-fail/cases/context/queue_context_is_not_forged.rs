// SPDX-License-Identifier: GPL-2.0

//! A nonblocking driver cannot obtain the context of a blocking one.

use kernel::block::mq::{Blocking, IdleRequest, NonBlocking, Operations, QueueContext};

fn sleeps(_: QueueContext<'_, Blocking>) {}

pub fn may<T: Operations<Context = Blocking>>(rq: &IdleRequest<'_, T>) {
    sleeps(rq.context());
}

pub fn must_not<T: Operations<Context = NonBlocking>>(rq: &IdleRequest<'_, T>) {
    #[cfg(bad)]
    sleeps(rq.context()); //~ ERROR E0308: mismatched types
    let _ = rq.context();
}
