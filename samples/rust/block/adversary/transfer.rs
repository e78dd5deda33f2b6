// SPDX-License-Identifier: GPL-2.0

//! The transfer of data, done right or wrong.

use super::{
    extremes,
    rng::Rng,
    shared::Shared, //
    variant::Variant,
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

/// Transfers the data of a request in the callback that was given it.
pub(crate) fn transfer<T: Variant>(
    shared: &Shared<T>,
    rq: &StartedRequest<T>,
    context: QueueContext<'_, T::Context>,
    rng: &mut Rng,
) -> BlkResult {
    let at = if rng.one_in(16) {
        extremes::edge(rng)
    } else {
        rq.sector().bytes()
    };
    let len = match rng.below(16) {
        0 => rq.bytes().wrapping_add(1),
        1 => rq.bytes() / 2,
        2 => extremes::edge(rng) as u32,
        _ => rq.bytes(),
    };
    match (rq.transfer(), rng.below(4)) {
        (Transfer::FromDisk(memory), 0) => fill(memory, rng),
        (Transfer::FromDisk(mut memory), 1) => shared.cache.read(context, at, &mut memory, len)?,
        (Transfer::FromDisk(mut memory), _) => shared.store.read(context, at, &mut memory, len)?,
        (Transfer::ToDisk(memory), 0) => read_segments(memory, rng),
        (Transfer::ToDisk(mut memory), 1) => match rng.below(2) {
            0 => shared.cache.write(context, at, &mut memory, len)?,
            _ => shared.cache.write_through(context, at, &mut memory, len)?,
        },
        (Transfer::ToDisk(mut memory), _) => shared.store.write(context, at, &mut memory, len)?,
        (Transfer::None, choice) => return forget(shared, rq.op(), context, at, len, choice),
    }
    Ok(())
}

/// Carries out a request without data.
fn forget<T: Variant>(
    shared: &Shared<T>,
    op: Op,
    context: QueueContext<'_, T::Context>,
    at: u64,
    len: u32,
    choice: u64,
) -> BlkResult {
    match op {
        Op::Flush => shared.cache.flush(context)?,
        Op::Discard if choice == 0 => shared.store.remove(context, at, len.into())?,
        Op::Discard | Op::WriteZeroes => shared.cache.remove(context, at, len.into())?,
        _ => return Err(BlkStatus::NOTSUPP),
    }
    Ok(())
}

/// Transfers data in any context: reads get made-up bytes, written bytes are dropped.
pub(crate) fn transfer_dummy<T: Variant>(rq: &StartedRequest<T>, rng: &mut Rng) {
    match rq.transfer() {
        Transfer::FromDisk(memory) => fill(memory, rng),
        Transfer::ToDisk(memory) => read_segments(memory, rng),
        Transfer::None => {}
    }
}

fn fill(mut memory: Segments<'_, FromDisk>, rng: &mut Rng) {
    match rng.below(4) {
        0 => {
            let mut first = memory.take_bytes(extremes::edge(rng) as u32);
            first.fill(1);
            memory.skip_bytes(extremes::edge(rng) as u32);
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

fn read_segments(mut memory: Segments<'_, ToDisk>, rng: &mut Rng) {
    let mut bytes = [0; 8];
    memory.skip_bytes(rng.below(600) as u32);
    for segment in memory.take_bytes(extremes::edge(rng) as u32) {
        let _ = segment.read(segment.size(), &mut bytes);
        let _ = segment.read(usize::MAX, &mut bytes);
        let _ = segment.read(segment.size() - 1, &mut bytes[..1]);
        let _ = segment.read(0, &mut []);
    }
}
