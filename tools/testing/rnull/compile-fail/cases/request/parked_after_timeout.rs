// SPDX-License-Identifier: GPL-2.0

//! A request that was taken over after its time is not left without an owner again.

use kernel::block::mq::{Operations, OverdueRequest};

pub fn case<T: Operations>(rq: OverdueRequest<T>) {
    #[cfg(bad)]
    rq.leave_in_flight(); //~ ERROR E0599: no method named `leave_in_flight` found
    #[cfg(not(bad))]
    rq.requeue();
}
