// SPDX-License-Identifier: GPL-2.0

//! A request that was not started cannot be ended.

use kernel::block::mq::{IdleRequest, Operations};

pub fn case<T: Operations>(rq: IdleRequest<'_, T>) {
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0599: no method named `end` found for struct `IdleRequest
    #[cfg(not(bad))]
    rq.start().end(Ok(()));
}
