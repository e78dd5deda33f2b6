// SPDX-License-Identifier: GPL-2.0

//! What a driver should not do where it does it, but can.

use super::{
    chance::Chance,
    extremes,
    kind::Kind,
    place::Place,
    world::World, //
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

/// Kinds of deeds, which the user can leave out: the parameter `without`.
const DROP: u32 = 1;
const STORE: u32 = 2;
const BAD_BLOCKS: u32 = 4;
const CHANGE: u32 = 8;
const LOCKED: u32 = 16;

/// Does something at `place`, or mostly nothing.
pub(crate) fn occasion<T: Kind>(world: &World<T>, place: Place) {
    let mut chance = world.occasion(place);
    if chance.one_in(3) {
        deed(world, place, &mut chance);
    }
}

/// Does something at `place`, perhaps under a lock or with interrupts off.
fn deed<T: Kind>(world: &World<T>, place: Place, chance: &mut Chance) {
    match chance.below(12) {
        0 if world.does(LOCKED) => {
            // It may be this CPU that holds it: a request ends under it.
            if let Some(_held) = world.outer_irq.try_lock() {
                bare_deed(world, Place::UnderSpinLockIrq, chance);
            }
        }
        1 if world.does(LOCKED) => {
            let _off = local_interrupt_disable();
            bare_deed(world, Place::InterruptsOff, chance);
        }
        _ => bare_deed(world, place, chance),
    }
}

/// Does something under a spinlock that only tasks take.
pub(crate) fn under_spin_lock<T: Kind>(world: &World<T>) {
    let mut chance = world.occasion(Place::UnderSpinLock);
    if !world.does(LOCKED) {
        return;
    }
    if let Some(_held) = world.outer.try_lock() {
        bare_deed(world, Place::UnderSpinLock, &mut chance);
    }
}

fn bare_deed<T: Kind>(world: &World<T>, place: Place, chance: &mut Chance) {
    place.reached();
    match chance.below(10) {
        0..=2 if world.does(DROP) => {
            end_doomed(world, place, chance);
            drop(world.condemned_at(place));
        }
        3 | 4 if world.does(STORE) => store(world, chance),
        5 if world.does(BAD_BLOCKS) => bad_blocks(world, chance),
        6 => {
            let _ = world.fault.should_fail();
        }
        7 => {
            // The clone may be the last.
            drop(world.line());
            drop(world.tags());
        }
        8 | 9 if place.is_no_task() && world.does(CHANGE) => change(world, chance),
        _ => {}
    }
}

/// Ends the requests that are to end here.
fn end_doomed<T: Kind>(world: &World<T>, place: Place, chance: &mut Chance) {
    let mut requests = world.doomed_at(place);
    while let Some(rq) = requests.pop_front() {
        match chance.below(8) {
            0 => rq.requeue(),
            1 => rq.end(Err(BlkStatus::IOERR)),
            2 => IoCompletionBatch::new().end(rq, Ok(())),
            // So do all others.
            3 => return,
            _ => rq.end(Ok(())),
        }
    }
}

/// Uses the stores with plain buffers.
fn store<T: Kind>(world: &World<T>, chance: &mut Chance) {
    let mut bytes = [0x5a; 64];
    let len = chance.below(bytes.len() as u64 + 1) as usize;
    let at = if chance.one_in(4) {
        extremes::edge(chance)
    } else {
        chance.below(1 << 22)
    };
    // Whatever it says.
    let _ = match chance.below(8) {
        0 | 1 => world.store.read_bytes(at, &mut bytes[..len]),
        2 | 3 => world.store.write_bytes(at, &bytes[..len]),
        4 => world.store.remove_bytes(at, chance.below(1 << 20)),
        5 => world.store.remove_bytes(at, extremes::edge(chance)),
        6 => {
            world.store.set_block_size(extremes::edge(chance) as u32);
            Ok(())
        }
        _ => {
            let _ = (world.store.pages(), world.cache.pages());
            Ok(())
        }
    };
}

/// Uses the table of bad blocks.
fn bad_blocks<T: Kind>(world: &World<T>, chance: &mut Chance) {
    let edge = |chance: &mut Chance| {
        if chance.one_in(4) {
            extremes::edge(chance)
        } else {
            chance.below(2000)
        }
    };
    let (at, len) = (Sector(edge(chance)), Sectors(edge(chance)));
    let _ = match chance.below(6) {
        0 | 1 => world.bad.set(at, len),
        2 | 3 => world.bad.clear(at, len),
        4 => {
            let _ = world.bad.first(at, len);
            Ok(())
        }
        _ => {
            let _ = world.bad.iter().count();
            Ok(())
        }
    };
}

/// Changes the queues of the disks, or makes or adds another disk, where no task can wait.
fn change<T: Kind>(world: &World<T>, chance: &mut Chance) {
    let Some(tags) = world.tags() else { return };
    match chance.below(4) {
        0 | 1 => {
            let _ = tags.set_queue_counts(extremes::queue_counts(chance));
        }
        2 => {
            let builder = GenDiskBuilder::new(tags, static_lock_class!());
            drop(builder.build(c"adv_callback", Ok(T::orphan())));
        }
        _ => drop(world.replace_spare(None).map(NewDisk::add)),
    }
}
