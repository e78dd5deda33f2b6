// SPDX-License-Identifier: GPL-2.0

//! The I/O path of the driver.

use crate::{
    backing::Backing,
    completion::{
        self,
        Completion,
        CompletionBatch, //
        HctxData,
    },
    pdu::Pdu,
    slow_path::{
        RequeueBy,
        SlowPath, //
    },
    trace,
    transfer::{
        transfer,
        transfer_first, //
    },
    zoned::Zones, //
};
use core::marker::PhantomData;
use kernel::{
    block::{
        mq::{
            CompletingRequest,
            Context,
            HwQueue,
            IdleRequest,
            IoCompletionBatch,
            Operations,
            PlugList,
            QueueContext,
            QueueResult,
            QueueType,
            RequestList,
            RequestQueue,
            StartedRequest,
            TimedOutRequest,
            TimeoutAction,
            Timer, //
        },
        zone::ZoneReporter,
        BlkResult,
        BlkStatus,
        Sectors,
        SECTOR_SIZE, //
    },
    prelude::*, //
};

/// The operations of the driver. `C` says whether `queue_rq` may sleep.
pub(crate) struct Null<C>(PhantomData<C>);

/// The driver's data of a disk.
pub(crate) struct Queue {
    /// What keeps the data, if anything does.
    pub(crate) backing: Option<Backing>,
    /// Throttling, fault injection and bad blocks.
    pub(crate) slow_path: SlowPath,
    /// The zones of a zoned disk.
    pub(crate) zones: Option<Zones>,
    /// How requests are completed.
    pub(crate) completion: Completion,
}

#[vtable]
impl<C: Context> Operations for Null<C> {
    type Context = C;
    type TagSetData = ();
    type QueueData = Queue;
    type HwData = HctxData<Self>;
    type RequestData = Pdu;
    type Timer = Timer;

    fn init_hw_queue(queue: &Queue, _set: &(), _index: u32) -> impl PinInit<HctxData<Self>, Error> {
        let (broken, completion) = (queue.slow_path.should_fail_init_hctx(), queue.completion);
        pin_init::pin_init_scope(move || {
            if broken {
                Err(EFAULT)
            } else {
                Ok(HctxData::new(completion))
            }
        })
    }

    fn init_request(_set: &()) -> impl PinInit<Pdu> {
        Pdu::new()
    }

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
        handle_request(rq, None)
    }

    fn queue_rqs<'q>(rqs: &mut PlugList<'q, Self>) {
        // If handling a request may wait for memory, completed writes must not wait in a batch:
        // their completion may be what frees the memory.
        let mut batch = CompletionBatch::new();
        while let Some(rq) = rqs.pop() {
            let batch = (!C::MAY_SLEEP).then_some(&mut batch);
            if let Err(rejected) = handle_request(rq, batch) {
                rqs.push_back(rejected);
            }
        }
    }

    fn complete(rq: CompletingRequest<Self>) {
        completion::in_softirq(rq);
    }

    fn timer_expired(rq: StartedRequest<Self>) {
        completion::in_timer(rq);
    }

    fn delay_expired(requests: RequestList<Self>) {
        completion::in_delay_queue(requests);
    }

    fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
        hw.data().polled.complete_all(batch)
    }

    fn queue_timer_expired(queues: RequestQueue<'_, Self>) {
        queues.data().slow_path.refill_throttle(queues);
    }

    fn report_zones(queue: &Queue, reporter: &mut ZoneReporter<'_>) -> Result {
        match &queue.zones {
            Some(zones) => zones.report(reporter),
            None => Ok(()),
        }
    }

    fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        let (hw, tag) = (rq.hw_queue(), rq.tag());
        let action = if hw.queue_type() == QueueType::Poll {
            match hw.data().polled.time_out(rq) {
                Ok(action) => action,
                // Another CPU has polled for it meanwhile.
                Err(rq) => return rq.reset_timer(),
            }
        } else {
            let is_first = rq.data().set_timed_out();
            match rq.try_take() {
                Ok((rq, action)) => {
                    rq.complete();
                    action
                }
                // The request still has an owner, which will end it with this status.
                Err(rq) if is_first => rq.reset_timer(),
                // It is late once more, and that was logged before.
                Err(rq) => return rq.reset_timer(),
            }
        };
        pr_info!("rq with tag {tag} timed out\n");
        action
    }
}

/// Handles a request.
///
/// Inlined into both callers: the call overhead is measurable.
#[inline(always)]
fn handle_request<'q, C: Context>(
    rq: IdleRequest<'q, Null<C>>,
    batch: Option<&mut CompletionBatch<'q, Null<C>>>,
) -> QueueResult<'q, Null<C>> {
    let (queue, hw, context) = (rq.queue_data(), rq.hw_queue(), rq.context());
    if queue.slow_path.is_enabled() {
        return handle_request_slow(rq, batch);
    }

    let rq = rq.start();
    trace::rq_issue(&rq);
    let result = if_data(&queue.backing, context, |data| transfer(data, context, &rq));
    queue.completion.complete(hw, rq, result, batch);
    Ok(())
}

/// Handles a request of a disk with throttling, fault injection, bad blocks or zones.
#[cold]
fn handle_request_slow<'q, C: Context>(
    rq: IdleRequest<'q, Null<C>>,
    batch: Option<&mut CompletionBatch<'q, Null<C>>>,
) -> QueueResult<'q, Null<C>> {
    let (queue, hw, context) = (rq.queue_data(), rq.hw_queue(), rq.context());
    let lose_it = queue.slow_path.should_timeout(&rq);
    match queue.slow_path.should_requeue(hw.index()) {
        Some(RequeueBy::BlockLayer) => return Err(rq.reject(BlkStatus::RESOURCE)),
        Some(RequeueBy::Driver) => {
            rq.requeue();
            return Ok(());
        }
        None => (),
    }
    if let Err(status) = queue.slow_path.throttle(&rq) {
        return Err(rq.reject(status));
    }

    let mut rq = rq.start();
    trace::rq_issue(&rq);
    // A polled request is never lost: it times out unless a task polls for it.
    if lose_it && hw.queue_type() != QueueType::Poll {
        rq.data().set_result(Err(BlkStatus::TIMEOUT));
        rq.leave_in_flight();
        return Ok(());
    }
    let backing = &queue.backing;
    let transfer = move |rq: &_, len: Sectors| {
        // No request has 4 GiB.
        let bytes = (len.0 as u32).wrapping_mul(SECTOR_SIZE);
        if_data(backing, context, |data| {
            transfer_first(data, context, rq, bytes)
        })
    };
    let result = match &queue.zones {
        Some(zones) => zones.handle(&mut rq, &queue.slow_path, backing, transfer),
        None => {
            let (len, status) = queue.slow_path.check_bad_blocks(&rq);
            transfer(&rq, len).and(status)
        }
    };
    queue.completion.complete(hw, rq, result, batch);
    Ok(())
}

/// Calls `f`, which carries out a request, unless the disk keeps no data.
#[inline(always)]
fn if_data<C: Context>(
    backing: &Option<Backing>,
    context: QueueContext<'_, C>,
    f: impl FnOnce(&Backing) -> BlkResult,
) -> BlkResult {
    match backing {
        // There is no data, so every operation succeeds at once.
        None => Ok(()),
        // A disk with data is blocking, since a write may have to wait for memory.
        _ if !context.may_sleep() => unsupported(),
        Some(data) => f(data),
    }
}

/// The result of a request that needs data, on a disk that is not blocking and so has none.
// A function of its own, so that the compiler takes the result of such a disk for a constant.
#[cold]
#[inline(never)]
fn unsupported() -> BlkResult {
    Err(BlkStatus::NOTSUPP)
}
