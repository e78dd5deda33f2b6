// SPDX-License-Identifier: GPL-2.0

//! The way of a request through the driver.

use crate::{
    backing::Backing,
    completion::{
        self,
        Completion,
        CompletionBatch, //
        HctxData,
    },
    conditions::Conditions,
    pdu::Pdu,
    transfer::transfer, //
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
        BlkResult,
        BlkStatus, //
    },
    prelude::*, //
};

/// The driver's operations, for disks whose requests may sleep or may not, as `C` says.
pub(crate) struct Null<C>(PhantomData<C>);

/// The shape of a disk.
pub(crate) struct Queue {
    /// What stands behind its sectors.
    pub(crate) backing: Backing,
    /// What may happen to its requests on their way.
    pub(crate) conditions: Conditions,
    /// How its requests end.
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
        let (broken, completion) = (queue.conditions.should_fail_init_hctx(), queue.completion);
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
        // Where serving may wait for memory, what was written before must not wait along: it may be
        // what frees the memory.
        let mut together = CompletionBatch::new();
        while let Some(rq) = rqs.pop() {
            let together = (!C::MAY_SLEEP).then_some(&mut together);
            if let Err(refused) = handle_request(rq, together) {
                rqs.push_back(refused);
            }
        }
    }

    fn complete(rq: CompletingRequest<Self>) {
        completion::in_softirq(rq);
    }

    fn timer_expired(rq: StartedRequest<Self>) {
        completion::from_timer(rq);
    }

    fn delay_expired(requests: RequestList<Self>) {
        completion::from_delay_queue(requests);
    }

    fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
        hw.data().polled.reap(batch)
    }

    fn queue_timer_expired(queues: RequestQueue<'_, Self>) {
        queues.data().conditions.queue_timer_expired(queues);
    }

    fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        let (hw, tag) = (rq.hw_queue(), rq.tag());
        let answer = if hw.queue_type() == QueueType::Poll {
            match hw.data().polled.give_up(rq) {
                Ok(done) => done,
                // It was polled for at the last moment.
                Err(rq) => return rq.reset_timer(),
            }
        } else {
            rq.data().mark_late();
            match rq.try_take() {
                Ok((rq, done)) => {
                    rq.complete();
                    done
                }
                // It was not lost: what serves it has it still, and will end it with this status.
                Err(rq) => rq.reset_timer(),
            }
        };
        pr_info!("rq with tag {tag} timed out\n");
        answer
    }
}

/// Takes a request through all stages.
///
/// It is a part of both its callers: what a call costs shows at this speed.
#[inline(always)]
fn handle_request<'q, C: Context>(
    rq: IdleRequest<'q, Null<C>>,
    together: Option<&mut CompletionBatch<'q, Null<C>>>,
) -> QueueResult<'q, Null<C>> {
    let (queue, hw, context) = (rq.queue_data(), rq.hw_queue(), rq.context());
    if queue.conditions.any() {
        return handle_request_slow(rq, together);
    }

    let rq = rq.start();
    let outcome = do_transfer(&queue.backing, context, &rq, rq.bytes());
    queue.completion.finish(hw, rq, outcome, together);
    Ok(())
}

/// The same, where something may happen to the request.
#[cold]
fn handle_request_slow<'q, C: Context>(
    rq: IdleRequest<'q, Null<C>>,
    together: Option<&mut CompletionBatch<'q, Null<C>>>,
) -> QueueResult<'q, Null<C>> {
    let (queue, hw, context) = (rq.queue_data(), rq.hw_queue(), rq.context());
    let lost = queue.conditions.should_timeout(&rq);
    if let Some(by_driver) = queue.conditions.should_requeue() {
        return requeue(rq, by_driver);
    }
    if let Err(status) = queue.conditions.throttle(&rq) {
        return Err(rq.reject(status));
    }

    let rq = rq.start();
    // A request that is polled for is lost if nobody polls.
    if lost && hw.queue_type() != QueueType::Poll {
        rq.data().keep(Err(BlkStatus::TIMEOUT));
        rq.leave_in_flight();
        return Ok(());
    }
    let (len, verdict) = queue.conditions.check_bad_blocks(&rq);
    let outcome = do_transfer(&queue.backing, context, &rq, len.bytes() as u32).and(verdict);
    queue.completion.finish(hw, rq, outcome, together);
    Ok(())
}

/// Does what a request asks for, with the first `len` of its bytes.
#[inline(always)]
fn do_transfer<C: Context>(
    backing: &Backing,
    context: QueueContext<'_, C>,
    rq: &StartedRequest<Null<C>>,
    len: u32,
) -> BlkResult {
    match backing {
        // Whatever it is.
        Backing::Nothing => Ok(()),
        _ => transfer(backing, context, rq, len),
    }
}

/// Has a request queued again, by the driver or by the block layer.
fn requeue<'q, C: Context>(
    rq: IdleRequest<'q, Null<C>>,
    by_driver: bool,
) -> QueueResult<'q, Null<C>> {
    if !by_driver {
        return Err(rq.reject(BlkStatus::RESOURCE));
    }
    rq.requeue();
    Ok(())
}
