// SPDX-License-Identifier: GPL-2.0

//! A segment does not outlive its request.

use kernel::block::{
    bio::Transfer,
    mq::{Operations, StartedRequest},
};

pub fn whole<T: Operations>(rq: StartedRequest<T>) {
    let transfer = rq.transfer();
    #[cfg(not(bad))]
    drop(transfer);
    rq.end(Ok(())); //~ ERROR E0505: cannot move out of `rq` because it is borrowed
    #[cfg(bad)]
    drop(transfer);
}

pub fn one<T: Operations>(rq: StartedRequest<T>) {
    if let Transfer::FromDisk(mut segments) = rq.transfer() {
        let segment = segments.next();
        #[cfg(not(bad))]
        drop(segment);
        drop(segments);
        rq.complete(); //~ ERROR E0505: cannot move out of `rq` because it is borrowed
        #[cfg(bad)]
        drop(segment);
    }
}
