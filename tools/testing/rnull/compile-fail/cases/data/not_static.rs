// SPDX-License-Identifier: GPL-2.0

//! The data of a disk cannot borrow anything.

//@ more errors follow from the first

use kernel::{
    block::mq::{Blocking, IdleRequest, NoTimer, Operations, QueueResult},
    prelude::*,
};

#[cfg(bad)]
pub struct Driver<'a>(&'a u32);
#[cfg(not(bad))]
pub struct Driver<'a>(core::marker::PhantomData<fn() -> &'a u32>);

#[cfg(bad)]
#[vtable]
impl<'a> Operations for Driver<'a> {
    type Context = Blocking;
    type TagSetData = ();
    type QueueData = &'a u32; //~ ERROR E0477
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_: &Self::QueueData, _: &(), _: u32) -> impl PinInit<(), Error> {
        Ok(())
    }

    fn init_request(_: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
        rq.start().end(Ok(()));
        Ok(())
    }
}

#[cfg(not(bad))]
#[vtable]
impl Operations for Driver<'static> {
    type Context = Blocking;
    type TagSetData = ();
    type QueueData = &'static u32;
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_: &Self::QueueData, _: &(), _: u32) -> impl PinInit<(), Error> {
        Ok(())
    }

    fn init_request(_: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
        rq.start().end(Ok(()));
        Ok(())
    }
}
