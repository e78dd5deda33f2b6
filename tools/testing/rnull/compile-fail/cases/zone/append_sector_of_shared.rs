// SPDX-License-Identifier: GPL-2.0

//! The position of a request changes only while nothing else looks at the request.

use kernel::{
    block::{
        mq::{Operations, StartedRequest},
        Sector,
    },
    prelude::*,
};

pub fn case<T: Operations>(rq: &mut StartedRequest<T>) -> Result {
    let request = &**rq;
    #[cfg(not(bad))]
    let _ = request.sector();
    rq.set_append_sector(Sector(8))?; //~ ERROR E0502: cannot borrow `*rq` as mutable
    #[cfg(bad)]
    let _ = request.sector();
    Ok(())
}
