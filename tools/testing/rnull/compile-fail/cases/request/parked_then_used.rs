// SPDX-License-Identifier: GPL-2.0

//! A parked request is out of hand.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    rq.leave_in_flight();
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
}
