// SPDX-License-Identifier: GPL-2.0

//! A handler has to be `Send`, because it is called on the CPU that is interrupted.

use core::marker::PhantomData;
use kernel::{
    irq::{
        exclusive::Handler,
        IrqReturn, //
    },
    prelude::*,
    sync::rcu, //
};

#[cfg(bad)]
pub struct Counter(u32, PhantomData<*mut u32>);
#[cfg(not(bad))]
pub struct Counter(u32, PhantomData<u32>);

#[vtable]
impl Handler for Counter {
    //~^ ERROR E0277: `*mut u32` cannot be sent between threads safely
    fn handle(&mut self, _: &rcu::Guard) -> IrqReturn {
        self.0 += 1;
        IrqReturn::Handled
    }
}
