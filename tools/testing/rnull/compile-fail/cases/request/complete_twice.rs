// SPDX-License-Identifier: GPL-2.0

//! A request cannot be completed twice.

use kernel::block::mq::{CompletingRequest, Operations, StartedRequest};

pub fn started<T: Operations>(rq: StartedRequest<T>) {
    rq.complete();
    #[cfg(bad)]
    rq.complete(); //~ ERROR E0382: use of moved value: `rq`
}

pub fn completing<T: Operations>(rq: CompletingRequest<T>) {
    #[cfg(bad)]
    rq.complete(); //~ ERROR E0599: no method named `complete` found for struct `CompletingRequest
    #[cfg(not(bad))]
    rq.end(Ok(()));
}
