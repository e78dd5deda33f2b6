// SPDX-License-Identifier: GPL-2.0

//! What is borrowed from a request does not outlive the request.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations<QueueData = u32>>(rq: StartedRequest<T>) -> u32 {
    let data = rq.queue_data();
    #[cfg(not(bad))]
    let data = *data;
    rq.end(Ok(())); //~ ERROR E0505: cannot move out of `rq` because it is borrowed
    #[cfg(bad)]
    let data = *data;
    data
}
