// SPDX-License-Identifier: GPL-2.0

//! The transfer of data, as it should be or as it should not.

use super::{
    chance::Chance,
    extremes,
    kind::Kind,
    world::World, //
};
use kernel::{
    block::{
        bio::{
            FromDisk,
            Segments,
            ToDisk,
            Transfer, //
        },
        mq::{
            Op,
            QueueContext,
            StartedRequest, //
        },
        BlkResult,
        BlkStatus, //
    }, //
};

/// Serves a request in the callback that it came to.
pub(crate) fn serve<T: Kind>(
    world: &World<T>,
    rq: &StartedRequest<T>,
    context: QueueContext<'_, T::Context>,
    chance: &mut Chance,
) -> BlkResult {
    let at = if chance.one_in(16) {
        extremes::edge(chance)
    } else {
        rq.sector().bytes()
    };
    let len = match chance.below(16) {
        0 => rq.bytes().wrapping_add(1),
        1 => rq.bytes() / 2,
        2 => extremes::edge(chance) as u32,
        _ => rq.bytes(),
    };
    match (rq.transfer(), chance.below(4)) {
        (Transfer::FromDisk(memory), 0) => fill(memory, chance),
        (Transfer::FromDisk(mut memory), 1) => world.cache.read(context, at, &mut memory, len)?,
        (Transfer::FromDisk(mut memory), _) => world.store.read(context, at, &mut memory, len)?,
        (Transfer::ToDisk(memory), 0) => look(memory, chance),
        (Transfer::ToDisk(mut memory), 1) => match chance.below(2) {
            0 => world.cache.write(context, at, &mut memory, len)?,
            _ => world.cache.write_through(context, at, &mut memory, len)?,
        },
        (Transfer::ToDisk(mut memory), _) => world.store.write(context, at, &mut memory, len)?,
        (Transfer::None, way) => return forget(world, rq.op(), context, at, len, way),
    }
    Ok(())
}

/// Serves a request without data.
fn forget<T: Kind>(
    world: &World<T>,
    op: Op,
    context: QueueContext<'_, T::Context>,
    at: u64,
    len: u32,
    way: u64,
) -> BlkResult {
    match op {
        Op::Flush => world.cache.flush(context)?,
        Op::Discard if way == 0 => world.store.remove(context, at, len.into())?,
        Op::Discard | Op::WriteZeroes => world.cache.remove(context, at, len.into())?,
        _ => return Err(BlkStatus::NOTSUPP),
    }
    Ok(())
}

/// Serves a request anywhere: what a request reads is made up, what it writes forgotten.
pub(crate) fn pretend<T: Kind>(rq: &StartedRequest<T>, chance: &mut Chance) {
    match rq.transfer() {
        Transfer::FromDisk(memory) => fill(memory, chance),
        Transfer::ToDisk(memory) => look(memory, chance),
        Transfer::None => {}
    }
}

fn fill(mut memory: Segments<'_, FromDisk>, chance: &mut Chance) {
    match chance.below(4) {
        0 => {
            let mut first = memory.take_bytes(extremes::edge(chance) as u32);
            first.fill(1);
            memory.skip_bytes(extremes::edge(chance) as u32);
            memory.fill(2);
        }
        1 => {
            for segment in memory {
                let _ = segment.write(segment.size(), b"behind");
                let _ = segment.write(usize::MAX, b"wraps");
                let _ = segment.write(segment.size() - 1, b"4");
                let _ = segment.write(0, b"");
            }
        }
        _ => memory.fill(3),
    }
}

fn look(mut memory: Segments<'_, ToDisk>, chance: &mut Chance) {
    let mut bytes = [0; 8];
    memory.skip_bytes(chance.below(600) as u32);
    for segment in memory.take_bytes(extremes::edge(chance) as u32) {
        let _ = segment.read(segment.size(), &mut bytes);
        let _ = segment.read(usize::MAX, &mut bytes);
        let _ = segment.read(segment.size() - 1, &mut bytes[..1]);
        let _ = segment.read(0, &mut []);
    }
}
