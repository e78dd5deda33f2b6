// SPDX-License-Identifier: GPL-2.0

//! A request cannot be requeued without kicking the requeue list.

use kernel::block::mq::{Operations, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    #[cfg(bad)]
    rq.requeue(false); //~ ERROR E0061: this method takes 0 arguments
    #[cfg(not(bad))]
    rq.requeue();
}
