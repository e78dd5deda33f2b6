// SPDX-License-Identifier: GPL-2.0

//! The states of a request, each with what may be done in it.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

// In the order of reading, as in `mq`.

mod idle;

mod timeout;

mod started;

mod completing;

mod view;

mod command;

mod timer;

pub(super) use self::command::{
    command_size,
    Command,
    OWNED, //
};
pub use self::{
    completing::Completing,
    idle::{
        Idle,
        Refused, //
    },
    started::Started,
    timeout::{
        Overdue,
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
