// SPDX-License-Identifier: GPL-2.0

//! A request cannot be used after `complete`.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    rq.complete();
    #[cfg(bad)]
    let _ = rq.bytes(); //~ ERROR E0382: borrow of moved value: `rq`
}
