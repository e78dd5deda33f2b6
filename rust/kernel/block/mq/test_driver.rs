// SPDX-License-Identifier: GPL-2.0

//! A driver for tests, which ends its requests immediately.

use super::{
    Blocking, //
    IdleRequest,
    NoTimer,
    Operations,
    QueueResult,
};
use crate::prelude::*;

pub(crate) struct Driver;

#[vtable]
impl Operations for Driver {
    type Context = Blocking;
    type TagSetData = ();
    type QueueData = ();
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_: &(), _: &(), _: u32) -> impl PinInit<(), Error> {
        Ok(())
    }

    fn init_request(_: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
        rq.start().end(Ok(()));
        Ok(())
    }
}
