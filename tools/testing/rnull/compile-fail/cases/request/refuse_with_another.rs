// SPDX-License-Identifier: GPL-2.0

//! A request is refused by handing back that very request.

use kernel::block::{
    mq::{Idle, Operations, Refused},
    status::BlkStatus,
};

pub fn case<'q, 'other, T: Operations>(
    rq: Idle<'q, T>,
    other: Idle<'other, T>,
) -> Result<(), Refused<'q, T>> {
    #[cfg(bad)]
    return Err(other.refuse(BlkStatus::RESOURCE)); //~ ERROR lifetime may not live long enough //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    {
        drop(other);
        Err(rq.refuse(BlkStatus::RESOURCE))
    }
}
