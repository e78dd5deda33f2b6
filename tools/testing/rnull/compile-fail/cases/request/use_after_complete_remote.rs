// SPDX-License-Identifier: GPL-2.0

//! A started request cannot be used after it was completed, even if this CPU is to end it.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    let completing = rq.complete_remote();
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
    drop(completing);
}
