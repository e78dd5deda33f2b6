// SPDX-License-Identifier: GPL-2.0

//! All that safe code can do with requests.

use super::{
    call_site::CallSite,
    data::{
        DiskData,
        HwData,
        Pdu,
        SetData, //
    },
    extremes,
    leak::Leak,
    misuse::maybe_misuse,
    rng::Rng,
    shared::Shared, //
    transfer,
    variant::Variant,
    zones, //
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
    Variant
    + Operations<
        TagSetData = SetData<Self>,
        QueueData = DiskData<Self>,
        HwData = HwData<Self>,
        RequestData = Pdu<Self>,
    >
{
}

impl<T> Adversary for T where
    T: Variant
        + Operations<
            TagSetData = SetData<Self>,
            QueueData = DiskData<Self>,
            HwData = HwData<Self>,
            RequestData = Pdu<Self>,
        >
{
}

/// All statuses.
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

fn status(rng: &mut Rng) -> BlkStatus {
    let index = rng.below(STATUSES.len() as u64) as usize;
    STATUSES.get(index).copied().unwrap_or(BlkStatus::IOERR)
}

/// Returns a failure for which the block layer does not retry the request.
fn failure(rng: &mut Rng) -> BlkStatus {
    Some(status(rng))
        .filter(|status| !status.is_retried())
        .unwrap_or(BlkStatus::IOERR)
}

pub(crate) fn result(rng: &mut Rng) -> BlkResult {
    if rng.one_in(4) {
        Err(status(rng))
    } else {
        Ok(())
    }
}

/// Implements `Operations::init_hw_queue`.
pub(crate) fn init_hw_queue<T: Adversary>(set: &SetData<T>) -> Result<HwData<T>> {
    let shared = &set.shared;
    maybe_misuse(shared, CallSite::InitHwQueue);
    if shared.queue_fails() {
        return Err(EIO);
    }
    let mut rng = shared.rng_at(CallSite::InitHwQueue);
    // C warns when this runs out of memory.
    if rng.one_in(6) && !shared.alloc_may_fail() {
        let options = extremes::tag_set_options(&mut rng, None);
        drop(TagSet::<T>::new(options, Ok(SetData::new(shared))));
    }
    let delay_queue = T::delay_queue(extremes::delay(&mut rng))?;
    Ok(HwData::new(shared, delay_queue))
}

/// Implements `Operations::init_request`.
pub(crate) fn init_request<T: Adversary>(set: &SetData<T>) -> Pdu<T> {
    maybe_misuse(&set.shared, CallSite::InitRequest);
    Pdu::new(&set.shared)
}

/// Leaks the request in some form if the user asks for it. Otherwise returns the request.
fn leak<'q, T: Adversary>(
    shared: &Shared<T>,
    rq: IdleRequest<'q, T>,
) -> Option<IdleRequest<'q, T>> {
    if shared.leaks(Leak::IdleRequest) {
        forget(rq);
    } else if shared.leaks(Leak::RejectedRequest) {
        forget(rq.reject(BlkStatus::RESOURCE));
    } else if shared.leaks(Leak::StartedRequest) {
        forget(rq.start());
    } else if shared.leaks(Leak::IoCompletionBatch) {
        let mut batch = IoCompletionBatch::new();
        forget(batch.add(rq.start()));
        forget(batch);
    } else if shared.leaks(Leak::RequestList) {
        let mut list = RequestList::new();
        list.push_back(rq.start());
        forget(list);
    } else if shared.leaks(Leak::PendingList) {
        let mut list = PendingList::new();
        list.push_back(rq.start());
        forget(list);
    } else {
        return Some(rq);
    }
    None
}

/// Implements `Operations::queue_rq`.
pub(crate) fn queue_rq<'q, T: Adversary>(
    rq: IdleRequest<'q, T>,
    site: CallSite,
) -> QueueResult<'q, T> {
    let Some(shared) = rq.queue_data().shared.as_ref() else {
        return Err(rq.reject(BlkStatus::IOERR));
    };
    let Some(rq) = leak(shared, rq) else {
        return Ok(());
    };
    maybe_misuse(shared, site);
    let mut rng = shared
        .rng_at(site)
        .fork(rq.sector().0)
        .fork(rq.bytes().into());
    // Requeueing a request forever is a documented hang.
    let again = rq.data().issue() % 4 != 3;
    match rng.below(20) {
        0 if again => Err(rq.reject(BlkStatus::RESOURCE)),
        1 if again => Err(rq.reject(BlkStatus::DEV_RESOURCE)),
        2 => Err(rq.reject(failure(&mut rng))),
        3 => {
            drop(rq.reject(failure(&mut rng)));
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
            let _off = rng.one_in(4).then(local_interrupt_disable);
            T::pause(rq.hw_queue().request_queue(), extremes::delay(&mut rng));
            Err(rq.reject(BlkStatus::RESOURCE))
        }
        8 if again => {
            rq.start().requeue();
            Ok(())
        }
        choice => {
            let hw = rq.hw_queue();
            let rq = rq.start();
            if rng.one_in(2) {
                let outcome = transfer::transfer(shared, &rq, &mut rng);
                if outcome.is_err() && rng.one_in(2) {
                    rq.end(outcome);
                    return Ok(());
                }
            }
            started(shared, Some(hw), rq, choice, &mut rng);
            // The request and its disk may have been freed. What the callback borrows has not.
            let _ = (
                hw.index(),
                hw.queue_type(),
                hw.queue_data().shared.is_some(),
            );
            maybe_misuse(shared, site);
            Ok(())
        }
    }
}

/// Does one of many things with a started request.
fn started<T: Adversary>(
    shared: &Shared<T>,
    hw: Option<HwQueue<'_, T>>,
    mut rq: StartedRequest<T>,
    choice: u64,
    rng: &mut Rng,
) {
    zones::set_append_sector(&mut rq, rng);
    let rejected = match choice {
        9 => {
            drop(rq);
            return;
        }
        10 if shared.times_out && rng.one_in(3) => T::wait(rq, extremes::long_delay(rng)),
        10 => T::wait(rq, extremes::delay(rng)),
        11 => match hw {
            Some(hw) => T::push_delayed(&hw.data().delay_queue, rq),
            None => Err(rq),
        },
        12 => match shared.delay_queue() {
            Some(delay_queue) => T::push_delayed(&delay_queue, rq),
            None => Err(rq),
        },
        13 => T::raise_completion(rq),
        14 if shared.times_out => T::leave_in_flight(rq),
        15 => {
            IoCompletionBatch::new().end(rq, result(rng));
            return;
        }
        16 if shared.times_out => {
            shared.until_timeout(rq);
            return;
        }
        16 | 17 => Err(rq),
        _ => {
            rq.end(result(rng));
            return;
        }
    };
    if let Err(rq) = rejected {
        shared.stash(rq);
    }
}

/// Implements `Operations::queue_rqs`.
pub(crate) fn queue_rqs<'q, T: Adversary>(rqs: &mut PlugList<'q, T>) {
    while let Some(rq) = rqs.pop() {
        let shared = rq.queue_data().shared.clone();
        if let Err(refused) = queue_rq(rq, CallSite::QueueRqs) {
            let mut rng = shared
                .as_ref()
                .map_or(Rng::new(0), |shared| shared.rng_at(CallSite::QueueRqs));
            if rng.one_in(2) {
                rqs.push_back(refused);
            } else {
                drop(refused);
            }
            if rng.one_in(4) {
                // The block layer passes the rest to `queue_rq`.
                return;
            }
        }
    }
}

/// Ends requests or keeps them further. Dropping the list ends the rest.
pub(crate) fn finish<T: Adversary>(
    shared: &Shared<T>,
    mut requests: RequestList<T>,
    batch: &mut IoCompletionBatch<'_, T>,
    site: CallSite,
) -> u32 {
    let mut ended = 0;
    let mut rng = shared.rng_at(site);
    while let Some(rq) = requests.pop_front() {
        if rng.one_in(4) {
            transfer::transfer_dummy(rq.transfer(), &mut rng);
        }
        match rng.below(8) {
            0 => rq.requeue(),
            1 => {
                if let Err(rq) = batch.add(rq) {
                    drop(rq);
                }
            }
            2 => batch.end(rq, result(&mut rng)),
            choice @ 3..=4 => started(shared, None, rq, choice + 6, &mut rng),
            5 => {
                drop(rq);
                // The rest of the list is dropped.
                return ended;
            }
            _ => rq.end(result(&mut rng)),
        }
        ended += 1;
    }
    ended
}

/// Finishes all kept requests, after a possible misuse.
pub(crate) fn sweep<T: Adversary>(
    shared: &Shared<T>,
    batch: &mut IoCompletionBatch<'_, T>,
    site: CallSite,
) -> u32 {
    maybe_misuse(shared, site);
    finish(shared, shared.take_stash(), batch, site)
}

/// Implements `Operations::commit_rqs`.
pub(crate) fn commit_rqs<T: Adversary>(hw: HwQueue<'_, T>) {
    if let Some(shared) = &hw.queue_data().shared {
        maybe_misuse(shared, CallSite::CommitRqs);
    }
}

/// Implements `Operations::complete`.
pub(crate) fn complete<T: Adversary>(rq: CompletingRequest<T>) {
    let Some(shared) = rq.queue_data().shared.clone() else {
        return;
    };
    if shared.leaks(Leak::CompletingRequest) {
        forget(rq);
        return;
    }
    maybe_misuse(&shared, CallSite::Complete);
    let mut rng = shared.rng_at(CallSite::Complete);
    match rng.below(8) {
        0 => drop(rq),
        1 if rq.data().issue() % 4 != 3 => rq.requeue(),
        _ => rq.end(result(&mut rng)),
    }
    maybe_misuse(&shared, CallSite::Complete);
}

/// Implements `Operations::timer_expired`.
pub(crate) fn timer_expired<T: Adversary>(rq: StartedRequest<T>) {
    let Some(shared) = rq.queue_data().shared.clone() else {
        return;
    };
    maybe_misuse(&shared, CallSite::TimerExpired);
    let mut rng = shared.rng_at(CallSite::TimerExpired);
    let choice = 9 + rng.below(11);
    started(&shared, None, rq, choice, &mut rng);
    maybe_misuse(&shared, CallSite::TimerExpired);
}

/// Implements `Operations::delay_expired`.
pub(crate) fn delay_expired<T: Adversary>(requests: RequestList<T>) {
    let Some(shared) = shared_of(&requests) else {
        return;
    };
    maybe_misuse(&shared, CallSite::DelayExpired);
    finish(
        &shared,
        requests,
        &mut IoCompletionBatch::new(),
        CallSite::DelayExpired,
    );
    maybe_misuse(&shared, CallSite::DelayExpired);
}

fn shared_of<T: Adversary>(requests: &RequestList<T>) -> Option<Arc<Shared<T>>> {
    requests.front()?.queue_data().shared.clone()
}

/// Implements `Operations::poll`.
pub(crate) fn poll<T: Adversary>(hw: HwQueue<'_, T>, batch: &mut IoCompletionBatch<'_, T>) -> u32 {
    match &hw.queue_data().shared {
        Some(shared) => sweep(shared, batch, CallSite::Poll),
        None => u32::MAX,
    }
}

/// Implements `Operations::queue_timer_expired`.
pub(crate) fn queue_timer_expired<T: Adversary>(queues: RequestQueue<'_, T>) {
    queues.start();
    if let Some(shared) = &queues.data().shared {
        sweep(
            shared,
            &mut IoCompletionBatch::new(),
            CallSite::QueueTimerExpired,
        );
    }
}

/// Implements `Operations::timeout`.
pub(crate) fn timeout<'t, T: Adversary>(rq: TimedOutRequest<'t, T>) -> TimeoutAction<'t> {
    let Some(shared) = rq.queue_data().shared.clone() else {
        return rq.reset_timer();
    };
    maybe_misuse(&shared, CallSite::Timeout);
    let mut rng = shared.rng_at(CallSite::Timeout);
    let taken = match rng.below(8) {
        0 => Err(rq),
        1..=4 => rq.try_take().or_else(|rq| shared.take_overdue(rq)),
        _ => shared.take_overdue(rq).or_else(|rq| rq.try_take()),
    };
    let action = match taken {
        Ok((rq, action)) => {
            match rng.below(3) {
                _ if shared.leaks(Leak::OverdueRequest) => forget(rq),
                0 => drop(rq),
                1 => rq.requeue(),
                _ => rq.end(result(&mut rng)),
            }
            action
        }
        Err(rq) => rq.reset_timer(),
    };
    maybe_misuse(&shared, CallSite::Timeout);
    action
}
