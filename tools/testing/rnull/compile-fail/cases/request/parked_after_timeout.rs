// SPDX-License-Identifier: GPL-2.0

//! A request that was taken over after its time is not left without an owner again.

use kernel::block::mq::{Operations, Overdue};

pub fn case<T: Operations>(rq: Overdue<T>) {
    #[cfg(bad)]
    rq.park(); //~ ERROR E0599: no method named `park` found
    #[cfg(not(bad))]
    rq.requeue();
}
