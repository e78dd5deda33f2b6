// SPDX-License-Identifier: GPL-2.0

//! A request with the memory of a user stays with the task whose memory it is.

//@ more errors name the other pointers

use kernel::{
    block::mq::{Operations, Passthrough, UserPassthrough},
    error::Result,
    uaccess::UserPtr,
};

fn other_task<T: Send>(_: T) {}

pub fn case<T: Operations>(rq: Passthrough<'_, T>) -> Result {
    #[cfg(not(bad))]
    other_task(rq);
    #[cfg(bad)]
    {
        let rq: UserPassthrough<'_, T> = rq.with_user_memory(UserPtr::from_addr(0), 512)?;
        other_task(rq); //~ ERROR cannot be sent between threads safely
    }
    Ok(())
}

#[cfg(not(bad))]
pub fn unused<T: Operations>(_: UserPassthrough<'_, T>, _: UserPtr) {}
