// SPDX-License-Identifier: GPL-2.0

//! What becomes of requests: every way that compiles.

use super::{
    chance::Chance,
    data::{
        Command,
        Disk,
        Hw,
        Set, //
    },
    deeds::occasion,
    extremes,
    kind::Kind,
    leak::Leak,
    place::Place,
    serve,
    world::World, //
};
use core::mem::forget;
use kernel::{
    block::{
        mq::{
            CompletingRequest,
            HwQueue,
            IdleRequest,
            IoCompletionBatch,
            Operations,
            PendingList,
            PlugList,
            QueueResult,
            RejectedRequest,
            RequestList,
            RequestQueue,
            StartedRequest,
            TagSet,
            TimedOutRequest,
            TimeoutAction, //
        },
        BlkResult,
        BlkStatus, //
    },
    interrupt::local_interrupt_disable,
    prelude::*,
    sync::Arc, //
};

/// A driver with the data of this module.
pub(crate) trait Adversary:
    Kind
    + Operations<
        TagSetData = Set<Self>,
        QueueData = Disk<Self>,
        HwData = Hw<Self>,
        RequestData = Command<Self>,
    >
{
}

impl<T> Adversary for T where
    T: Kind
        + Operations<
            TagSetData = Set<Self>,
            QueueData = Disk<Self>,
            HwData = Hw<Self>,
            RequestData = Command<Self>,
        >
{
}

/// All statuses there are.
const STATUSES: &[BlkStatus] = &[
    BlkStatus::NOTSUPP,
    BlkStatus::TIMEOUT,
    BlkStatus::NOSPC,
    BlkStatus::TRANSPORT,
    BlkStatus::TARGET,
    BlkStatus::RESV_CONFLICT,
    BlkStatus::MEDIUM,
    BlkStatus::PROTECTION,
    BlkStatus::RESOURCE,
    BlkStatus::IOERR,
    BlkStatus::AGAIN,
    BlkStatus::DEV_RESOURCE,
    BlkStatus::ZONE_OPEN_RESOURCE,
    BlkStatus::ZONE_ACTIVE_RESOURCE,
    BlkStatus::OFFLINE,
    BlkStatus::DURATION_LIMIT,
    BlkStatus::INVAL,
];

fn status(chance: &mut Chance) -> BlkStatus {
    let index = chance.below(STATUSES.len() as u64) as usize;
    STATUSES.get(index).copied().unwrap_or(BlkStatus::IOERR)
}

/// A failure, but not one for which the block layer would send the request again without end.
fn failure(chance: &mut Chance) -> BlkStatus {
    Some(status(chance))
        .filter(|status| !status.is_retried())
        .unwrap_or(BlkStatus::IOERR)
}

fn result(chance: &mut Chance) -> BlkResult {
    if chance.one_in(4) {
        Err(status(chance))
    } else {
        Ok(())
    }
}

/// `Operations::init_hw_queue`.
pub(crate) fn init_hw_queue<T: Adversary>(set: &Set<T>) -> Result<Hw<T>> {
    let world = &set.world;
    occasion(world, Place::InitHwQueue);
    if world.queue_fails() {
        return Err(EIO);
    }
    let mut chance = world.occasion(Place::InitHwQueue);
    // Without memory, C warns.
    if chance.one_in(6) && !world.is_scarce() {
        let options = extremes::tag_set_options(&mut chance, None);
        drop(TagSet::<T>::new(options, Ok(Set::new(world))));
    }
    let line = T::line(extremes::delay(&mut chance))?;
    Ok(Hw::new(world, line))
}

/// `Operations::init_request`.
pub(crate) fn init_request<T: Adversary>(set: &Set<T>) -> Command<T> {
    occasion(&set.world, Place::InitRequest);
    Command::new(&set.world)
}

/// Leaks the request in one way or another, if the user wants that; else gives it back.
fn leak<'q, T: Adversary>(world: &World<T>, rq: IdleRequest<'q, T>) -> Option<IdleRequest<'q, T>> {
    if world.leaks(Leak::IdleRequest) {
        forget(rq);
    } else if world.leaks(Leak::RejectedRequest) {
        forget(rq.reject(BlkStatus::RESOURCE));
    } else if world.leaks(Leak::StartedRequest) {
        forget(rq.start());
    } else if world.leaks(Leak::IoCompletionBatch) {
        let mut batch = IoCompletionBatch::new();
        forget(batch.add(rq.start()));
        forget(batch);
    } else if world.leaks(Leak::RequestList) {
        let mut list = RequestList::new();
        list.push_back(rq.start());
        forget(list);
    } else if world.leaks(Leak::PendingList) {
        let mut list = PendingList::new();
        list.push_back(rq.start());
        forget(list);
    } else {
        return Some(rq);
    }
    None
}

/// `Operations::queue_rq`.
pub(crate) fn queue_rq<'q, T: Adversary>(
    rq: IdleRequest<'q, T>,
    place: Place,
) -> QueueResult<'q, T> {
    let Some(world) = rq.queue_data().world.as_ref() else {
        return Err(rq.reject(BlkStatus::IOERR));
    };
    let Some(rq) = leak(world, rq) else {
        return Ok(());
    };
    occasion(world, place);
    let mut chance = world
        .occasion(place)
        .fork(rq.sector().0)
        .fork(rq.bytes().into());
    // A driver that sends each request back without end is a hang that is documented.
    let again = rq.data().issue() % 4 != 3;
    match chance.below(20) {
        0 if again => Err(rq.reject(BlkStatus::RESOURCE)),
        1 if again => Err(rq.reject(BlkStatus::DEV_RESOURCE)),
        2 => Err(rq.reject(failure(&mut chance))),
        3 => {
            drop(rq.reject(failure(&mut chance)));
            Ok(())
        }
        4 if again => {
            drop(rq.reject(BlkStatus::RESOURCE));
            Ok(())
        }
        5 if again => {
            rq.requeue();
            Ok(())
        }
        6 => {
            drop(rq);
            Ok(())
        }
        7 if again => {
            let _off = chance.one_in(4).then(local_interrupt_disable);
            T::pause(rq.hw_queue().request_queue(), extremes::delay(&mut chance));
            Err(rq.reject(BlkStatus::RESOURCE))
        }
        8 if again => {
            rq.start().requeue();
            Ok(())
        }
        way => {
            let (scope, hw) = (rq.context(), rq.hw_queue());
            let rq = rq.start();
            if chance.one_in(2) {
                let outcome = serve::serve(world, &rq, scope, &mut chance);
                if outcome.is_err() && chance.one_in(2) {
                    rq.end(outcome);
                    return Ok(());
                }
            }
            started(world, Some(hw), rq, way, &mut chance);
            // The request may have gone, and its disk; what it lent has not.
            let _ = (hw.index(), hw.queue_type(), hw.queue_data().world.is_some());
            occasion(world, place);
            Ok(())
        }
    }
}

/// Does one of many things with a request that was started.
fn started<T: Adversary>(
    world: &World<T>,
    hw: Option<HwQueue<'_, T>>,
    rq: StartedRequest<T>,
    way: u64,
    chance: &mut Chance,
) {
    let unable = match way {
        9 => {
            drop(rq);
            return;
        }
        10 if world.times_out && chance.one_in(3) => T::wait(rq, extremes::long_delay(chance)),
        10 => T::wait(rq, extremes::delay(chance)),
        11 => match hw {
            Some(hw) => T::wait_in(&hw.data().line, rq),
            None => Err(rq),
        },
        12 => match world.line() {
            Some(line) => T::wait_in(&line, rq),
            None => Err(rq),
        },
        13 => T::hand_over(rq),
        14 if world.times_out => T::leave_in_flight(rq),
        15 => {
            IoCompletionBatch::new().end(rq, result(chance));
            return;
        }
        16 if world.times_out => {
            world.hoard(rq);
            return;
        }
        16 | 17 => Err(rq),
        _ => {
            rq.end(result(chance));
            return;
        }
    };
    if let Err(rq) = unable {
        world.stash(rq);
    }
}

/// `Operations::queue_rqs`.
pub(crate) fn queue_rqs<'q, T: Adversary>(rqs: &mut PlugList<'q, T>) {
    while let Some(rq) = rqs.pop() {
        let world = rq.queue_data().world.clone();
        if let Err(refused) = queue_rq(rq, Place::QueueRqs) {
            let mut chance = world
                .as_ref()
                .map_or(Chance::new(0), |world| world.occasion(Place::QueueRqs));
            if chance.one_in(2) {
                rqs.push_back(refused);
            } else {
                drop(refused);
            }
            if chance.one_in(4) {
                // The rest goes to `queue_rq`.
                return;
            }
        }
    }
}

/// Ends or moves on requests that were kept; those that are left end when the list goes.
pub(crate) fn settle<T: Adversary>(
    world: &World<T>,
    mut requests: RequestList<T>,
    batch: &mut IoCompletionBatch<'_, T>,
    place: Place,
) -> u32 {
    let mut ended = 0;
    let mut chance = world.occasion(place);
    while let Some(rq) = requests.pop_front() {
        if chance.one_in(4) {
            serve::pretend(&rq, &mut chance);
        }
        match chance.below(8) {
            0 => rq.requeue(),
            1 => {
                if let Err(rq) = batch.add(rq) {
                    drop(rq);
                }
            }
            2 => batch.end(rq, result(&mut chance)),
            way @ 3..=4 => started(world, None, rq, way + 6, &mut chance),
            5 => {
                drop(rq);
                // So do all others.
                return ended;
            }
            _ => rq.end(result(&mut chance)),
        }
        ended += 1;
    }
    ended
}

/// Does the same with all that are kept, after something that should not be done here.
pub(crate) fn sweep<T: Adversary>(
    world: &World<T>,
    batch: &mut IoCompletionBatch<'_, T>,
    place: Place,
) -> u32 {
    occasion(world, place);
    settle(world, world.take_stash(), batch, place)
}

/// `Operations::commit_rqs`.
pub(crate) fn commit_rqs<T: Adversary>(hw: HwQueue<'_, T>) {
    if let Some(world) = &hw.queue_data().world {
        occasion(world, Place::CommitRqs);
    }
}

/// `Operations::complete`.
pub(crate) fn complete<T: Adversary>(rq: CompletingRequest<T>) {
    let Some(world) = rq.queue_data().world.clone() else {
        return;
    };
    if world.leaks(Leak::CompletingRequest) {
        forget(rq);
        return;
    }
    occasion(&world, Place::Complete);
    let mut chance = world.occasion(Place::Complete);
    match chance.below(8) {
        0 => drop(rq),
        1 if rq.data().issue() % 4 != 3 => rq.requeue(),
        _ => rq.end(result(&mut chance)),
    }
    occasion(&world, Place::Complete);
}

/// `Operations::timer_expired`.
pub(crate) fn timer_expired<T: Adversary>(rq: StartedRequest<T>) {
    let Some(world) = rq.queue_data().world.clone() else {
        return;
    };
    occasion(&world, Place::Expired);
    let mut chance = world.occasion(Place::Expired);
    let way = 9 + chance.below(11);
    started(&world, None, rq, way, &mut chance);
    occasion(&world, Place::Expired);
}

/// `Operations::delay_expired`.
pub(crate) fn delay_expired<T: Adversary>(requests: RequestList<T>) {
    let Some(world) = world_of(&requests) else {
        return;
    };
    occasion(&world, Place::Due);
    settle(&world, requests, &mut IoCompletionBatch::new(), Place::Due);
    occasion(&world, Place::Due);
}

fn world_of<T: Adversary>(requests: &RequestList<T>) -> Option<Arc<World<T>>> {
    requests.front()?.queue_data().world.clone()
}

/// `Operations::poll`.
pub(crate) fn poll<T: Adversary>(hw: HwQueue<'_, T>, batch: &mut IoCompletionBatch<'_, T>) -> u32 {
    match &hw.queue_data().world {
        Some(world) => sweep(world, batch, Place::Poll),
        None => u32::MAX,
    }
}

/// `Operations::queue_timer_expired`.
pub(crate) fn queue_timer_expired<T: Adversary>(queues: RequestQueue<'_, T>) {
    queues.start();
    if let Some(world) = &queues.data().world {
        sweep(world, &mut IoCompletionBatch::new(), Place::Tick);
    }
}

/// `Operations::timeout`.
pub(crate) fn timeout<'t, T: Adversary>(rq: TimedOutRequest<'t, T>) -> TimeoutAction<'t> {
    let Some(world) = rq.queue_data().world.clone() else {
        return rq.reset_timer();
    };
    occasion(&world, Place::Timeout);
    let mut chance = world.occasion(Place::Timeout);
    let taken = match chance.below(8) {
        0 => Err(rq),
        1..=4 => rq.try_take().or_else(|rq| world.rescue(rq)),
        _ => world.rescue(rq).or_else(|rq| rq.try_take()),
    };
    let action = match taken {
        Ok((rq, action)) => {
            match chance.below(3) {
                _ if world.leaks(Leak::OverdueRequest) => forget(rq),
                0 => drop(rq),
                1 => rq.requeue(),
                _ => rq.end(result(&mut chance)),
            }
            action
        }
        Err(rq) => rq.reset_timer(),
    };
    occasion(&world, Place::Timeout);
    action
}
