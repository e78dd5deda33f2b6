// SPDX-License-Identifier: GPL-2.0

//! A request cannot be ended twice.

use kernel::block::{
    mq::{Operations, StartedRequest},
    status::BlkStatus,
};

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    rq.end(Ok(()));
    #[cfg(bad)]
    rq.end(Err(BlkStatus::IOERR)); //~ ERROR E0382: use of moved value: `rq`
}
