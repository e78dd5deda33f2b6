// SPDX-License-Identifier: GPL-2.0

//! The way in which requests end.

use crate::{
    config::Interrupt,
    pdu::{
        self,
        Pdu, //
    },
    poll_list::PollList, //
};
use kernel::{
    block::{
        mq::{
            CompletingRequest,
            DelayQueue,
            HwQueue,
            IoCompletionBatch,
            Operations,
            QueueType,
            RequestList,
            StartedRequest,
            Timer, //
        },
        BlkResult, //
    },
    prelude::*,
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
    pub(crate) fn finish<'q, T>(
        self,
        hw: HwQueue<'q, T>,
        rq: StartedRequest<T>,
        outcome: BlkResult,
        together: Option<&mut CompletionBatch<'q, T>>,
    ) where
        T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
    {
        let polled = hw.queue_type() == QueueType::Poll;
        match self {
            Self::Direct if !polled => match together {
                Some(together) => together.batch.end(rq, outcome),
                None => rq.end(outcome),
            },
            Self::Softirq if !polled => {
                rq.data().keep(outcome);
                rq.complete();
            }
            _ => {
                rq.data().keep(outcome);
                match (together, self) {
                    (Some(together), _) => together.keep(hw, rq),
                    (None, Self::Timer(delay)) if !polled => rq.delay(delay),
                    (None, _) => hw.data().polled.push(rq),
                }
            }
        }
    }
}

/// The requests of a hardware queue that are served, and end later.
#[pin_data]
pub(crate) struct HctxData<T: Operations<Timer = Timer>> {
    /// Those of a queue that is polled.
    #[pin]
    pub(crate) polled: PollList<T>,
    /// Those of any other that came together, if the disk has a timer. One alone has its own.
    delayed: DelayQueue<T>,
}

impl<T: Operations<RequestData = Pdu, Timer = Timer>> HctxData<T> {
    pub(crate) fn new(completion: Completion) -> impl PinInit<Self, Error> {
        let delay = match completion {
            Completion::Timer(delay) => delay,
            _ => Delta::ZERO,
        };
        try_pin_init!(Self {
            polled <- PollList::new(),
            delayed: DelayQueue::new(delay)?,
        })
    }
}

/// Keeps requests that were served by `hw` until they are polled for, or their time has passed.
fn defer<T>(hw: HwQueue<'_, T>, requests: &mut RequestList<T>)
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    match hw.queue_type() {
        QueueType::Poll => hw.data().polled.append(requests),
        _ => hw.data().delayed.push(requests),
    }
}

/// Requests that came together, to end or be put off together when this is dropped.
pub(crate) struct CompletionBatch<'q, T>
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    batch: IoCompletionBatch<'q, T>,
    later: RequestList<T>,
    /// The queue of the requests in `later`.
    hw: Option<HwQueue<'q, T>>,
}

impl<'q, T> CompletionBatch<'q, T>
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            batch: IoCompletionBatch::new(),
            later: RequestList::new(),
            hw: None,
        }
    }

    #[inline]
    fn keep(&mut self, hw: HwQueue<'q, T>, rq: StartedRequest<T>) {
        if self.hw.is_some_and(|last| last.index() != hw.index()) {
            self.settle();
        }
        self.hw = Some(hw);
        self.later.push_back(rq);
    }

    #[inline]
    fn settle(&mut self) {
        if let Some(hw) = self.hw {
            defer(hw, &mut self.later);
        }
    }
}

impl<T> Drop for CompletionBatch<'_, T>
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    #[inline]
    fn drop(&mut self) {
        self.settle();
    }
}

/// Ends a request in softirq context.
pub(crate) fn in_softirq<T: Operations<RequestData = Pdu>>(rq: CompletingRequest<T>) {
    let outcome = rq.data().outcome();
    rq.end(outcome);
}

/// Ends a request from its timer.
pub(crate) fn from_timer<T: Operations<RequestData = Pdu>>(rq: StartedRequest<T>) {
    let outcome = rq.data().outcome();
    rq.end(outcome);
}

/// Ends requests from the timer that they share.
pub(crate) fn from_delay_queue<T: Operations<RequestData = Pdu>>(requests: RequestList<T>) {
    pdu::end_all(requests, &mut IoCompletionBatch::new());
}
