// SPDX-License-Identifier: GPL-2.0

//! A request that was not started cannot end.

use kernel::block::mq::{Idle, Operations};

pub fn case<T: Operations>(rq: Idle<'_, T>) {
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0599: no method named `end` found for struct `Idle
    #[cfg(not(bad))]
    rq.start().end(Ok(()));
}
