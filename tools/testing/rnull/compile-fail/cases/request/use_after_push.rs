// SPDX-License-Identifier: GPL-2.0

//! A request cannot be used after it was pushed to a list.

use kernel::block::mq::{Operations, RequestList, StartedRequest};

pub fn case<T: Operations>(rq: StartedRequest<T>, list: &mut RequestList<T>) {
    list.push_back(rq);
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
}
