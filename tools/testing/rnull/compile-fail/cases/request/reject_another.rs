// SPDX-License-Identifier: GPL-2.0

//! `queue_rq` cannot reject another request than its own.

use kernel::block::{
    mq::{IdleRequest, Operations, QueueResult},
    status::BlkStatus,
};

pub fn case<'q, 'other, T: Operations>(
    rq: IdleRequest<'q, T>,
    other: IdleRequest<'other, T>,
) -> QueueResult<'q, T> {
    #[cfg(bad)]
    return Err(other.reject(BlkStatus::RESOURCE)); //~ ERROR lifetime may not live long enough //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    {
        drop(other);
        Err(rq.reject(BlkStatus::RESOURCE))
    }
}
