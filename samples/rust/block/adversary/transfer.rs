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
    rng: &mut Rng,
) -> BlkResult {
    let at = if rng.one_in(16) {
        extremes::edge(rng)
    } else {
        rq.sector().bytes()
    };
    carry_out(shared, rq.op(), at, rq.bytes(), rq.transfer(), rng)
}

/// Carries out an operation on memory, from the byte `at` on.
pub(crate) fn carry_out<T: Variant>(
    shared: &Shared<T>,
    op: Op,
    at: u64,
    bytes: u32,
    transfer: Transfer<'_>,
    rng: &mut Rng,
) -> BlkResult {
    match (transfer, rng.below(4)) {
        (Transfer::FromDisk(memory), 0) => fill(memory, rng),
        (Transfer::FromDisk(mut memory), _) => shared.memory.read(at, &mut memory, rng)?,
        (Transfer::ToDisk(memory), 0) => read_segments(memory, rng),
        (Transfer::ToDisk(mut memory), _) => shared.memory.write(at, &mut memory, rng)?,
        (Transfer::None, _) => match op {
            Op::Flush => {}
            Op::Discard | Op::WriteZeroes => shared.memory.discard(at, bytes),
            _ => return Err(BlkStatus::NOTSUPP),
        },
    }
    Ok(())
}

/// Transfers data in any context: reads get made-up bytes, written bytes are dropped.
pub(crate) fn transfer_dummy(transfer: Transfer<'_>, rng: &mut Rng) {
    match transfer {
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
