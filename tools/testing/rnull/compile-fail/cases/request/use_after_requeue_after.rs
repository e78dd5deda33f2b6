// SPDX-License-Identifier: GPL-2.0

//! A request that waits for its delay belongs to the block layer.

use kernel::{
    block::mq::{Operations, StartedRequest},
    time::Delta,
};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    rq.requeue_after(Delta::from_secs(1));
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
}
