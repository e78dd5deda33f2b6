// SPDX-License-Identifier: GPL-2.0

//! A request that was taken on timeout cannot be left in flight again.

use kernel::block::mq::{Operations, OverdueRequest};

pub fn case<T: Operations>(rq: OverdueRequest<T>) {
    #[cfg(bad)]
    rq.leave_in_flight(); //~ ERROR E0599: no method named `leave_in_flight` found
    #[cfg(not(bad))]
    rq.requeue();
}
