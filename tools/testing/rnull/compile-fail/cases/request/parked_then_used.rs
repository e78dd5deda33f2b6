// SPDX-License-Identifier: GPL-2.0

//! A parked request is out of hand.

use kernel::block::mq::{Operations, Started};

pub fn case<T: Operations>(rq: Started<T>) {
    rq.park();
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
}
