// SPDX-License-Identifier: GPL-2.0

//! The completion of requests.

use crate::{
    config::Interrupt,
    pdu::{
        self,
        Pdu, //
    },
    poll_list::PollList,
    trace, //
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

/// How requests are completed, except those of polled queues: `irqmode`.
#[derive(Clone, Copy)]
pub(crate) enum Completion {
    /// In `queue_rq`, or in a batch if `queue_rqs` of a nonblocking disk was called.
    Direct,
    /// In softirq context, on the CPU that submitted the request or one that shares its cache.
    Softirq,
    /// From a timer that expires after this time.
    Timer(Delta),
}

impl Completion {
    /// Returns the mode that the settings ask for.
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        match interrupt {
            Interrupt::None => Self::Direct,
            Interrupt::Softirq => Self::Softirq,
            Interrupt::Timer(nanoseconds) => Self::Timer(Delta::from_nanos(nanoseconds)),
        }
    }

    /// Completes a request of `hw` with `result`, at once or later.
    #[inline(always)]
    pub(crate) fn complete<'q, T>(
        &self,
        hw: HwQueue<'q, T>,
        rq: StartedRequest<T>,
        result: BlkResult,
        batch: Option<&mut CompletionBatch<'q, T>>,
    ) where
        T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
    {
        let polled = hw.queue_type() == QueueType::Poll;
        match self {
            Self::Direct if !polled => {
                if trace::rq_complete_enabled() {
                    end_traced(rq, result, batch);
                } else {
                    end(rq, result, batch);
                }
            }
            Self::Softirq if !polled => {
                rq.data().set_result(result);
                rq.complete();
            }
            _ => {
                rq.data().set_result(result);
                match (batch, self) {
                    (Some(batch), _) => batch.defer(hw, rq),
                    (None, Self::Timer(delay)) if !polled => rq.delay(*delay),
                    (None, _) => hw.data().polled.push(rq),
                }
            }
        }
    }
}

/// Ends a request at once, or with the others of its batch.
#[inline(always)]
fn end<'q, T>(rq: StartedRequest<T>, result: BlkResult, batch: Option<&mut CompletionBatch<'q, T>>)
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    match batch {
        Some(batch) => batch.direct.end(rq, result),
        None => rq.end(result),
    }
}

/// Like [`end`], with the event. Out of line, since an event makes the code around it slower: what
/// is used after it has to be kept meanwhile.
#[cold]
#[inline(never)]
fn end_traced<'q, T>(
    rq: StartedRequest<T>,
    result: BlkResult,
    batch: Option<&mut CompletionBatch<'q, T>>,
) where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    trace::rq_complete(&rq, result);
    end(rq, result, batch);
}

/// The driver's data of a hardware queue: the requests that are completed later.
#[pin_data]
pub(crate) struct HctxData<T: Operations<Timer = Timer>> {
    /// Requests of a polled queue.
    #[pin]
    pub(crate) polled: PollList<T>,
    /// Requests of other queues that came by `queue_rqs`, if `irqmode` is a timer. A request that
    /// came by `queue_rq` has a timer of its own.
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

/// Leaves requests of `hw` to be polled for, or to the timer of the queue.
fn defer<T>(hw: HwQueue<'_, T>, requests: &mut RequestList<T>)
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    match hw.queue_type() {
        QueueType::Poll => hw.data().polled.append(requests),
        _ => hw.data().delayed.push(requests),
    }
}

/// Requests that came by `queue_rqs`. They are completed or deferred when this is dropped.
pub(crate) struct CompletionBatch<'q, T>
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    direct: IoCompletionBatch<'q, T>,
    deferred: RequestList<T>,
    /// The hardware queue of the requests in `deferred`.
    hw: Option<HwQueue<'q, T>>,
}

impl<'q, T> CompletionBatch<'q, T>
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            direct: IoCompletionBatch::new(),
            deferred: RequestList::new(),
            hw: None,
        }
    }

    #[inline]
    fn defer(&mut self, hw: HwQueue<'q, T>, rq: StartedRequest<T>) {
        if self.hw.is_some_and(|last| last.index() != hw.index()) {
            self.flush();
        }
        self.hw = Some(hw);
        self.deferred.push_back(rq);
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(hw) = self.hw {
            defer(hw, &mut self.deferred);
        }
    }
}

impl<T> Drop for CompletionBatch<'_, T>
where
    T: Operations<HwData = HctxData<T>, RequestData = Pdu, Timer = Timer>,
{
    #[inline]
    fn drop(&mut self) {
        self.flush();
    }
}

/// Completes a request in softirq context.
pub(crate) fn in_softirq<T: Operations<RequestData = Pdu>>(rq: CompletingRequest<T>) {
    let result = rq.data().result();
    trace::rq_complete(&rq, result);
    rq.end(result);
}

/// Completes a request whose timer has expired.
pub(crate) fn in_timer<T: Operations<RequestData = Pdu>>(rq: StartedRequest<T>) {
    let result = rq.data().result();
    trace::rq_complete(&rq, result);
    rq.end(result);
}

/// Completes requests of a delay queue.
pub(crate) fn in_delay_queue<T: Operations<RequestData = Pdu>>(requests: RequestList<T>) {
    pdu::end_all(requests, &mut IoCompletionBatch::new());
}
