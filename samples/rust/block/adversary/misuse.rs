// SPDX-License-Identifier: GPL-2.0

//! Calls that a driver should not make in the context where it makes them.

use super::{
    call_site::CallSite,
    extremes,
    rng::Rng,
    shared::Shared, //
    variant::Variant,
};
use kernel::{
    block::{
        gendisk::{
            GenDiskBuilder,
            NewDisk, //
        },
        mq::IoCompletionBatch,
        BlkStatus,
        Sector,
        Sectors, //
    },
    interrupt::local_interrupt_disable,
    static_lock_class, //
};

/// Kinds of misuse, which the parameter `without` disables.
const DROP: u32 = 1;
const STORE: u32 = 2;
const BAD_BLOCKS: u32 = 4;
const CHANGE: u32 = 8;
const LOCKED: u32 = 16;

/// Misuses something in one of three cases.
pub(crate) fn maybe_misuse<T: Variant>(shared: &Shared<T>, site: CallSite) {
    let mut rng = shared.rng_at(site);
    if rng.one_in(3) {
        misuse(shared, site, &mut rng);
    }
}

/// Misuses something, perhaps under a lock or with interrupts disabled.
fn misuse<T: Variant>(shared: &Shared<T>, site: CallSite, rng: &mut Rng) {
    match rng.below(12) {
        0 if shared.is_enabled(LOCKED) => {
            // This CPU may hold the lock already, while it ends a request.
            if let Some(_held) = shared.outer_irq.try_lock() {
                misuse_unlocked(shared, CallSite::UnderSpinLockIrq, rng);
            }
        }
        1 if shared.is_enabled(LOCKED) => {
            let _off = local_interrupt_disable();
            misuse_unlocked(shared, CallSite::InterruptsOff, rng);
        }
        _ => misuse_unlocked(shared, site, rng),
    }
}

/// Misuses something under a spinlock that only tasks take.
pub(crate) fn under_spin_lock<T: Variant>(shared: &Shared<T>) {
    let mut rng = shared.rng_at(CallSite::UnderSpinLock);
    if !shared.is_enabled(LOCKED) {
        return;
    }
    if let Some(_held) = shared.outer.try_lock() {
        misuse_unlocked(shared, CallSite::UnderSpinLock, &mut rng);
    }
}

fn misuse_unlocked<T: Variant>(shared: &Shared<T>, site: CallSite, rng: &mut Rng) {
    site.reached();
    match rng.below(10) {
        0..=2 if shared.is_enabled(DROP) => {
            end_requests(shared, site, rng);
            drop(shared.take_to_drop_at(site));
        }
        3 | 4 if shared.is_enabled(STORE) => shared.memory.misuse(site, rng),
        5 if shared.is_enabled(BAD_BLOCKS) => bad_blocks(shared, rng),
        6 => {
            let _ = shared.fault.should_fail();
        }
        7 => {
            // The clone may be the last reference.
            drop(shared.delay_queue());
            drop(shared.tags());
        }
        8 | 9 if site.is_atomic() && shared.is_enabled(CHANGE) => change(shared, rng),
        _ => {}
    }
}

/// Ends the requests that are to end at this call site.
fn end_requests<T: Variant>(shared: &Shared<T>, site: CallSite, rng: &mut Rng) {
    let mut requests = shared.take_to_end_at(site);
    while let Some(rq) = requests.pop_front() {
        match rng.below(8) {
            0 => rq.requeue(),
            1 => rq.end(Err(BlkStatus::IOERR)),
            2 => IoCompletionBatch::new().end(rq, Ok(())),
            // The rest of the list is dropped.
            3 => return,
            _ => rq.end(Ok(())),
        }
    }
}

/// Uses the table of bad blocks.
fn bad_blocks<T: Variant>(shared: &Shared<T>, rng: &mut Rng) {
    let edge = |rng: &mut Rng| {
        if rng.one_in(4) {
            extremes::edge(rng)
        } else {
            rng.below(2000)
        }
    };
    let (at, len) = (Sector(edge(rng)), Sectors(edge(rng)));
    let _ = match rng.below(6) {
        0 | 1 => shared.bad.set(at, len),
        2 | 3 => shared.bad.clear(at, len),
        4 => {
            let _ = shared.bad.first(at, len);
            Ok(())
        }
        _ => {
            let _ = shared.bad.iter().count();
            Ok(())
        }
    };
}

/// Changes the number of queues, or builds or adds another disk, where no task may block.
fn change<T: Variant>(shared: &Shared<T>, rng: &mut Rng) {
    let Some(tags) = shared.tags() else { return };
    match rng.below(4) {
        0 | 1 => {
            let _ = tags.set_queue_counts(extremes::queue_counts(rng));
        }
        2 => {
            let builder = GenDiskBuilder::new(tags, static_lock_class!());
            drop(builder.build(c"adv_callback", Ok(T::orphan_data())));
        }
        _ => drop(shared.replace_spare_disk(None).map(NewDisk::add)),
    }
}
