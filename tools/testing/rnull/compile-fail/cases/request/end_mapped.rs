// SPDX-License-Identifier: GPL-2.0

//! A request cannot end before its memory is unmapped.

use kernel::{
    block::mq::{MappedRequest, Operations},
    sync::rcu,
};

pub fn case<T: Operations>(rq: MappedRequest<T>) {
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0599: no method named `end` found
    #[cfg(not(bad))]
    rq.unmap(&rcu::read_lock()).end(Ok(()));
}
