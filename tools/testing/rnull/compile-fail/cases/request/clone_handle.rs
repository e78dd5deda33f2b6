// SPDX-License-Identifier: GPL-2.0

//! The handle of a request cannot be cloned.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    #[cfg(bad)]
    rq.clone().end(Ok(())); //~ ERROR E0599: no method named `clone` found for struct `StartedRequest
    rq.end(Ok(()));
}
