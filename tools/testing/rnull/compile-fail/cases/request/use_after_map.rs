// SPDX-License-Identifier: GPL-2.0

//! A started request cannot be used after it was mapped for a device.

use kernel::{
    block::mq::{MappedRequest, Operations, StartedRequest},
    sync::rcu,
};

pub fn case<T: Operations>(rq: StartedRequest<T>) -> Option<MappedRequest<T>> {
    let mapped = rq.map(&rcu::read_lock(), |_, _| Ok(()));
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
    mapped.ok()
}
