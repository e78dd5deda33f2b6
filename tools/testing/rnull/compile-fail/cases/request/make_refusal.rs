// SPDX-License-Identifier: GPL-2.0

//! A refusal cannot be made up.

use kernel::block::mq::{Idle, Operations, Refused};
use kernel::block::status::BlkStatus;

pub fn case<'q, T: Operations>(rq: Idle<'q, T>) -> Refused<'q, T> {
    let status = BlkStatus::RESOURCE;
    #[cfg(bad)]
    let _ = Refused { rq, status }; //~ ERROR cannot construct `Refused< //~ ERROR E0308: mismatched types
    rq.refuse(status)
}
