// SPDX-License-Identifier: GPL-2.0

//! The data of a disk has to be `Send`, because every CPU uses it.

use core::cell::Cell;
use kernel::{
    block::mq::{Blocking, IdleRequest, NoTimer, Operations, QueueResult},
    prelude::*,
};

pub struct Driver;

#[vtable]
impl Operations for Driver {
    type Context = Blocking;
    type TagSetData = ();
    #[cfg(bad)]
    type QueueData = Cell<u32>; //~ ERROR E0277: `Cell<u32>` cannot be shared between threads safely
    #[cfg(not(bad))]
    type QueueData = u32;
    #[cfg(bad)]
    type HwData = *mut u32; //~ ERROR E0277: `*mut u32` cannot be shared between threads safely //~ ERROR E0277: `*mut u32` cannot be sent
    #[cfg(not(bad))]
    type HwData = ();
    #[cfg(bad)]
    type RequestData = Cell<u32>; //~ ERROR E0277: `Cell<u32>` cannot be shared between threads safely
    #[cfg(not(bad))]
    type RequestData = u32;
    type Timer = NoTimer;

    fn init_hw_queue(_: &Self::QueueData, _: &(), _: u32) -> impl PinInit<Self::HwData, Error> {
        #[cfg(bad)]
        return Ok(core::ptr::null_mut());
        #[cfg(not(bad))]
        Ok(())
    }

    fn init_request(_: &()) -> impl PinInit<Self::RequestData> {
        #[cfg(bad)]
        return Cell::new(0);
        #[cfg(not(bad))]
        0
    }

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
        rq.start().end(Ok(()));
        Ok(())
    }
}

pub fn unused(_: Cell<u32>) {}
