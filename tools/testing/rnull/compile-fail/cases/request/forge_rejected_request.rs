// SPDX-License-Identifier: GPL-2.0

//! A driver cannot construct a rejected request.

use kernel::block::mq::{IdleRequest, Operations, RejectedRequest};
use kernel::block::status::BlkStatus;

pub fn case<'q, T: Operations>(rq: IdleRequest<'q, T>) -> RejectedRequest<'q, T> {
    let status = BlkStatus::RESOURCE;
    #[cfg(bad)]
    let _ = RejectedRequest { rq, status }; //~ ERROR cannot construct `RejectedRequest< //~ ERROR E0308: mismatched types
    rq.reject(status)
}
