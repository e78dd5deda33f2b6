// SPDX-License-Identifier: GPL-2.0

//! The way in which requests end.

use crate::{
    command::Command,
    config::Interrupt,
    poll::Waiting, //
};
use kernel::{
    block::{
        mq::{
            Batch,
            Completing,
            HwQueue,
            Operations,
            QueueKind,
            Started,
            Timer, //
        },
        BlkResult, //
    },
    time::Delta, //
};

/// How the requests of a disk end, unless they are polled for; chosen at power-on.
#[derive(Clone, Copy)]
pub(crate) enum Completion {
    /// Where they were served, in batches if several came together.
    Direct,
    /// In softirq context, on the CPU that submitted them.
    Softirq,
    /// From a timer, this long after they were served.
    Timer(Delta),
}

impl Completion {
    /// Returns the way that the settings ask for.
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        match interrupt {
            Interrupt::None => Self::Direct,
            Interrupt::Softirq => Self::Softirq,
            Interrupt::Timer(nanoseconds) => Self::Timer(Delta::from_nanos(nanoseconds)),
        }
    }

    /// Ends a request that was served by `hw` with this `outcome`, or sets its end in motion.
    #[inline(always)]
    pub(crate) fn finish<T>(
        self,
        hw: HwQueue<'_, T>,
        rq: Started<T>,
        outcome: BlkResult,
        batch: Option<&mut Batch<'_, T>>,
    ) where
        T: Operations<HwData = Waiting<T>, RequestData = Command, Timer = Timer>,
    {
        if hw.kind() == QueueKind::Poll {
            rq.data().keep(outcome);
            hw.data().push(rq);
            return;
        }
        match self {
            Self::Direct => match batch {
                Some(batch) => batch.end(rq, outcome),
                None => rq.end(outcome),
            },
            Self::Softirq => {
                rq.data().keep(outcome);
                rq.complete();
            }
            Self::Timer(delay) => {
                rq.data().keep(outcome);
                rq.delay(delay);
            }
        }
    }
}

/// Ends a request in softirq context.
pub(crate) fn in_softirq<T: Operations<RequestData = Command>>(rq: Completing<T>) {
    let outcome = rq.data().outcome();
    rq.end(outcome);
}

/// Ends a request from its timer.
pub(crate) fn from_timer<T: Operations<RequestData = Command>>(rq: Started<T>) {
    let outcome = rq.data().outcome();
    rq.end(outcome);
}
