// SPDX-License-Identifier: GPL-2.0

//! A passthrough request does not outlive its queue.

use kernel::{
    block::mq::{Operations, PassthroughOp, PassthroughQueue},
    error::Result,
};

pub fn case<T: Operations>(queue: PassthroughQueue<T>) -> Result {
    let rq = queue.request(PassthroughOp::In)?;
    #[cfg(not(bad))]
    drop(rq);
    drop(queue); //~ ERROR E0505: cannot move out of `queue` because it is borrowed
    #[cfg(bad)]
    drop(rq);
    Ok(())
}
