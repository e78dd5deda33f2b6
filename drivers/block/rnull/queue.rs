// SPDX-License-Identifier: GPL-2.0

//! The way of a request through the driver.

use crate::{
    backing::Backing,
    command::Command,
    completion::{
        self,
        Completion,
        Later,
        Together, //
    },
    conditions::Conditions,
    transfer::transfer, //
};
use core::marker::PhantomData;
use kernel::{
    block::{
        mq::{
            Batch,
            Completing,
            Context,
            HwQueue,
            Idle,
            Operations,
            PlugList,
            QueueKind,
            Queues,
            Refused,
            RequestList,
            Scope,
            Started,
            TimedOut,
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
    type HwData = Later<Self>;
    type RequestData = Command;
    type Timer = Timer;

    fn init_hw_queue(queue: &Queue, _set: &(), _index: u32) -> impl PinInit<Later<Self>, Error> {
        let (broken, completion) = (queue.conditions.breaks_queue(), queue.completion);
        pin_init::pin_init_scope(move || {
            if broken {
                Err(EFAULT)
            } else {
                Ok(Later::new(completion))
            }
        })
    }

    fn init_request(_set: &()) -> impl PinInit<Command> {
        Command::new()
    }

    fn queue_rq<'q>(rq: Idle<'q, Self>, _last: bool) -> Result<(), Refused<'q, Self>> {
        serve(rq, None)
    }

    fn queue_rqs<'q>(rqs: &mut PlugList<'q, Self>) {
        // Where serving may wait for memory, what was written before must not wait along: it may be
        // what frees the memory.
        let mut together = Together::new();
        while let Some(rq) = rqs.pop() {
            let together = (!C::MAY_SLEEP).then_some(&mut together);
            if let Err(refused) = serve(rq, together) {
                rqs.push_back(refused);
            }
        }
    }

    fn complete(rq: Completing<Self>) {
        completion::in_softirq(rq);
    }

    fn expired(rq: Started<Self>) {
        completion::from_timer(rq);
    }

    fn due(requests: RequestList<Self>) {
        completion::from_line(requests);
    }

    fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut Batch<'_, Self>) -> u32 {
        hw.data().polled.reap(batch)
    }

    fn tick(queues: Queues<'_, Self>) {
        queues.data().conditions.tick(queues);
    }

    fn timeout<'t>(rq: TimedOut<'t, Self>) -> TimeoutAction<'t> {
        let (hw, tag) = (rq.hw_queue(), rq.tag());
        let answer = if hw.kind() == QueueKind::Poll {
            match hw.data().polled.give_up(rq) {
                Ok(done) => done,
                // It was polled for at the last moment.
                Err(rq) => return rq.reset_timer(),
            }
        } else {
            rq.data().mark_late();
            match rq.claim() {
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
fn serve<'q, C: Context>(
    rq: Idle<'q, Null<C>>,
    together: Option<&mut Together<'q, Null<C>>>,
) -> Result<(), Refused<'q, Null<C>>> {
    let (queue, hw, scope) = (rq.queue_data(), rq.hw_queue(), rq.scope());
    if queue.conditions.any() {
        return serve_under_conditions(rq, together);
    }

    let rq = rq.start();
    let outcome = carry_out(&queue.backing, scope, &rq, rq.bytes());
    queue.completion.finish(hw, rq, outcome, together);
    Ok(())
}

/// The same, where something may happen to the request.
#[cold]
fn serve_under_conditions<'q, C: Context>(
    rq: Idle<'q, Null<C>>,
    together: Option<&mut Together<'q, Null<C>>>,
) -> Result<(), Refused<'q, Null<C>>> {
    let (queue, hw, scope) = (rq.queue_data(), rq.hw_queue(), rq.scope());
    let lost = queue.conditions.loses(&rq);
    if let Some(by_driver) = queue.conditions.sends_back() {
        return send_back(rq, by_driver);
    }
    if let Err(status) = queue.conditions.admit(&rq) {
        return Err(rq.refuse(status));
    }

    let rq = rq.start();
    // A request that is polled for is lost if nobody polls.
    if lost && hw.kind() != QueueKind::Poll {
        rq.data().keep(Err(BlkStatus::TIMEOUT));
        rq.park();
        return Ok(());
    }
    let (len, verdict) = queue.conditions.survey(&rq);
    let outcome = carry_out(&queue.backing, scope, &rq, len.bytes() as u32).and(verdict);
    queue.completion.finish(hw, rq, outcome, together);
    Ok(())
}

/// Does what a request asks for, with the first `len` of its bytes.
#[inline(always)]
fn carry_out<C: Context>(
    backing: &Backing,
    scope: Scope<'_, C>,
    rq: &Started<Null<C>>,
    len: u32,
) -> BlkResult {
    match backing {
        // Whatever it is.
        Backing::Nothing => Ok(()),
        _ => transfer(backing, scope, rq, len),
    }
}

/// Has a request queued again, by the driver or by the block layer.
fn send_back<'q, C: Context>(
    rq: Idle<'q, Null<C>>,
    by_driver: bool,
) -> Result<(), Refused<'q, Null<C>>> {
    if !by_driver {
        return Err(rq.refuse(BlkStatus::RESOURCE));
    }
    rq.requeue();
    Ok(())
}
