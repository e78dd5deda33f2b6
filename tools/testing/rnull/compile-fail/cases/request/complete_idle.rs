// SPDX-License-Identifier: GPL-2.0

//! A request that was not started cannot be completed.

use kernel::block::mq::{Idle, Operations};

pub fn case<T: Operations>(rq: Idle<'_, T>) {
    #[cfg(bad)]
    rq.complete(); //~ ERROR E0599: no method named `complete` found for struct `Idle
    #[cfg(not(bad))]
    rq.start().complete();
}
