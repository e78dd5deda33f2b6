// SPDX-License-Identifier: GPL-2.0

//! The completion of a request cannot be raised twice.

use kernel::block::mq::{Completing, Operations, Started};

pub fn started<T: Operations>(rq: Started<T>) {
    rq.complete();
    #[cfg(bad)]
    rq.complete(); //~ ERROR E0382: use of moved value: `rq`
}

pub fn completing<T: Operations>(rq: Completing<T>) {
    #[cfg(bad)]
    rq.complete(); //~ ERROR E0599: no method named `complete` found for struct `Completing
    #[cfg(not(bad))]
    rq.end(Ok(()));
}
