// SPDX-License-Identifier: GPL-2.0

//! The context of a callback does not outlive the callback.

use kernel::block::mq::{IdleRequest, Operations, QueueContext};

pub fn case<'q, T: Operations>(rq: &IdleRequest<'q, T>) {
    #[cfg(bad)]
    let _: QueueContext<'static, T::Context> = rq.context(); //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    let _: QueueContext<'q, T::Context> = rq.context();
}
