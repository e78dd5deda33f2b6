// SPDX-License-Identifier: GPL-2.0

//! The way of a request through the driver.

use crate::{
    backing::Backing,
    command::Command,
    completion::{
        self,
        Completion, //
    },
    conditions::Conditions,
    poll::Waiting,
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
            Started,
            TimedOut,
            TimeoutAction,
            Timer, //
        },
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
    type HwData = Waiting<Self>;
    type RequestData = Command;
    type Timer = Timer;

    fn init_hw_queue(_queue: &Queue, _set: &(), _index: u32) -> impl PinInit<Waiting<Self>, Error> {
        Waiting::new()
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
        let mut batch = (!C::MAY_SLEEP).then(Batch::new);
        while let Some(rq) = rqs.pop() {
            if let Err(refused) = serve(rq, batch.as_mut()) {
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

    fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut Batch<'_, Self>) -> u32 {
        hw.data().reap(batch)
    }

    fn tick(queues: Queues<'_, Self>) {
        queues.data().conditions.tick(queues);
    }

    fn timeout(rq: &TimedOut<'_, Self>) -> TimeoutAction {
        let (hw, tag) = (rq.hw_queue(), rq.tag());
        if hw.kind() != QueueKind::Poll {
            // Whoever serves the request has it still, and will end it with this status.
            rq.data().record(Err(BlkStatus::TIMEOUT));
        } else if !hw.data().give_up(rq) {
            // It was polled for at the last moment.
            return TimeoutAction::Done;
        }
        pr_info!("rq with tag {tag} timed out\n");
        TimeoutAction::Done
    }
}

/// Takes a request through all stages.
fn serve<'q, C: Context>(
    rq: Idle<'q, Null<C>>,
    batch: Option<&mut Batch<'_, Null<C>>>,
) -> Result<(), Refused<'q, Null<C>>> {
    let (queue, hw, scope) = (rq.queue_data(), rq.hw_queue(), rq.scope());
    if queue.conditions.any() {
        return serve_under_conditions(rq, batch);
    }

    rq.data().begin();
    let rq = rq.start();
    let at = rq.sector();
    let outcome = transfer(
        &queue.backing,
        scope,
        rq.op(),
        at,
        rq.sectors(),
        rq.transfer(),
    );
    rq.data().record(outcome);
    queue.completion.finish(hw, rq, batch);
    Ok(())
}

/// The same, where something may happen to the request.
#[cold]
fn serve_under_conditions<'q, C: Context>(
    rq: Idle<'q, Null<C>>,
    batch: Option<&mut Batch<'_, Null<C>>>,
) -> Result<(), Refused<'q, Null<C>>> {
    let (queue, hw, scope) = (rq.queue_data(), rq.hw_queue(), rq.scope());
    if let Err(status) = queue.conditions.admit(&rq) {
        return Err(rq.refuse(status));
    }

    rq.data().begin();
    let rq = rq.start();
    let (len, verdict) = queue.conditions.survey(&rq);
    let outcome = transfer(
        &queue.backing,
        scope,
        rq.op(),
        rq.sector(),
        len,
        rq.transfer(),
    );
    rq.data().record(outcome.and(verdict));
    queue.completion.finish(hw, rq, batch);
    Ok(())
}
