// SPDX-License-Identifier: GPL-2.0

//! A request is not accessed after it was inserted into a table: another CPU may have ended it.

use kernel::block::mq::{Operations, StartedRequest, VacantEntry};

pub fn case<T: Operations>(vacant: VacantEntry<'_, StartedRequest<T>>, rq: StartedRequest<T>) {
    #[cfg(bad)]
    let request = &*rq;
    #[cfg(not(bad))]
    let request = rq.tag();
    vacant.insert(rq); //~ ERROR E0505: cannot move out of `rq` because it is borrowed
    #[cfg(bad)]
    request.tag();
    #[cfg(not(bad))]
    drop(request);
}
