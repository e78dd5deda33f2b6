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

mod pdu;

mod timer;

pub(super) use self::pdu::{
    cmd_size,
    RequestPdu,
    OWNED, //
};
pub use self::{
    completing::CompletingRequest,
    idle::{
        IdleRequest,
        QueueResult,
        RejectedRequest, //
    },
    started::StartedRequest,
    timeout::{
        OverdueRequest,
        TimedOutRequest,
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
