// SPDX-License-Identifier: GPL-2.0

//! `queue_rq` cannot return an error without the request.

use kernel::block::{
    mq::{IdleRequest, Operations, QueueResult},
    status::BlkStatus,
};

pub fn case<'q, T: Operations>(rq: IdleRequest<'q, T>) -> QueueResult<'q, T> {
    #[cfg(bad)]
    return Err(BlkStatus::IOERR); //~ ERROR E0308: mismatched types
    #[cfg(not(bad))]
    Err(rq.reject(BlkStatus::IOERR))
}
