// SPDX-License-Identifier: GPL-2.0

//! A request cannot be started twice.

use kernel::block::mq::{IdleRequest, Operations};

pub fn case<T: Operations>(rq: IdleRequest<'_, T>) {
    let started = rq.start();
    #[cfg(bad)]
    let _ = rq.start(); //~ ERROR E0382: use of moved value: `rq`
    started.end(Ok(()));
}
