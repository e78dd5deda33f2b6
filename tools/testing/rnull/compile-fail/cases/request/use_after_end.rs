// SPDX-License-Identifier: GPL-2.0

//! A request cannot be used after `end`.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    rq.end(Ok(()));
    #[cfg(bad)]
    let _ = rq.sector(); //~ ERROR E0382: borrow of moved value: `rq`
}
