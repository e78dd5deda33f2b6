// SPDX-License-Identifier: GPL-2.0

//! An entry of a table has to be `Send`, because the interrupt handler removes it.

use core::marker::PhantomData;
use kernel::block::mq::{InFlight, Operations, Request, StartedRequest};

#[cfg(bad)]
type Local = *mut u32;
#[cfg(not(bad))]
type Local = u32;

pub struct Command<T: Operations>(StartedRequest<T>, PhantomData<Local>);

impl<T: Operations> InFlight for Command<T> {
    //~^ ERROR E0277: `*mut u32` cannot be sent between threads safely
    type Driver = T;

    fn request(&self) -> &Request<T> {
        &self.0
    }
}
