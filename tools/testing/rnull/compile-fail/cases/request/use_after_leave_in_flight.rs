// SPDX-License-Identifier: GPL-2.0

//! A request cannot be used after `leave_in_flight`.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    rq.leave_in_flight();
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
}
