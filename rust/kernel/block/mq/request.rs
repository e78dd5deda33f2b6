// SPDX-License-Identifier: GPL-2.0

//! The states of a request, each with what may be done in it.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

mod command;
mod completing;
mod idle;
mod started;
mod timeout;
mod timer;
mod view;

pub(super) use self::command::{
    command_size,
    Command, //
};
pub use self::{
    completing::Completing,
    idle::{
        Idle,
        Refused, //
    },
    started::Started,
    timeout::{
        TimedOut,
        TimeoutAction, //
    },
    timer::{
        NoTimer,
        RequestTimer,
        Timer, //
    },
    view::{
        Op,
        Request, //
    },
};
