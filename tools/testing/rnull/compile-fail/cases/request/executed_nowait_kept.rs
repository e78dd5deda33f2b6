// SPDX-License-Identifier: GPL-2.0

//! A request that is executed without waiting is not accessed afterwards: it may be freed.

use kernel::{
    block::mq::{Operations, Passthrough},
    error::Result,
};

pub fn case<T: Operations>(rq: Passthrough<'_, T>) -> Result<u32> {
    let tag = rq.tag();
    rq.execute_nowait()?;
    #[cfg(bad)]
    let tag = rq.tag(); //~ ERROR E0382: borrow of moved value: `rq`
    Ok(tag)
}
