// SPDX-License-Identifier: GPL-2.0

//! A request with the memory of a user is executed only once.

use kernel::{
    block::mq::{Operations, UserPassthrough},
    error::Result,
};

pub fn case<T: Operations>(rq: UserPassthrough<'_, T>) -> Result {
    rq.execute()?.finish()?;
    #[cfg(bad)]
    rq.execute()?.finish()?; //~ ERROR E0382: use of moved value: `rq`
    Ok(())
}
