// SPDX-License-Identifier: GPL-2.0

//! A request that was not started cannot be completed.

use kernel::block::mq::{IdleRequest, Operations};

pub fn case<T: Operations>(rq: IdleRequest<'_, T>) {
    #[cfg(bad)]
    rq.complete(); //~ ERROR E0599: no method named `complete` found for struct `IdleRequest
    #[cfg(not(bad))]
    rq.start().complete();
}
