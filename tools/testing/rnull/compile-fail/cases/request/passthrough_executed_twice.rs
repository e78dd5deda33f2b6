// SPDX-License-Identifier: GPL-2.0

//! A passthrough request is executed only once.

use kernel::{
    block::mq::{Operations, Passthrough},
    error::Result,
};

pub fn case<T: Operations>(rq: Passthrough<'_, T>) -> Result {
    rq.execute()?.status()?;
    #[cfg(bad)]
    rq.execute()?.status()?; //~ ERROR E0382: use of moved value: `rq`
    Ok(())
}
