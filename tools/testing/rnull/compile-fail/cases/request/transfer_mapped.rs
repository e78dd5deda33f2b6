// SPDX-License-Identifier: GPL-2.0

//! A driver cannot access the memory of a request while a device may.

use kernel::{
    block::mq::{MappedRequest, Operations},
    sync::rcu,
};

pub fn case<T: Operations>(rq: MappedRequest<T>) {
    #[cfg(bad)]
    let _ = rq.transfer(); //~ ERROR E0599: no method named `transfer` found
    let _ = rq.unmap(&rcu::read_lock()).transfer();
}
