// SPDX-License-Identifier: GPL-2.0

//! The transfer of data.

use crate::backing::Backing;
use kernel::block::{
    bio::Transfer,
    mq::{
        Op,
        Operations,
        QueueContext,
        StartedRequest, //
    },
    BlkResult,
    BlkStatus, //
};

/// Carries out the operation of a request.
pub(crate) fn transfer<T: Operations>(
    backing: &Backing,
    context: QueueContext<'_, T::Context>,
    rq: &StartedRequest<T>,
) -> BlkResult {
    carry_out(backing, context, rq, rq.bytes())
}

/// Carries out the operation of a request, on its first `len` bytes.
pub(crate) fn transfer_first<T: Operations>(
    backing: &Backing,
    context: QueueContext<'_, T::Context>,
    rq: &StartedRequest<T>,
    len: u32,
) -> BlkResult {
    carry_out(backing, context, rq, len)
}

#[inline(always)]
fn carry_out<T: Operations>(
    backing: &Backing,
    context: QueueContext<'_, T::Context>,
    rq: &StartedRequest<T>,
    len: u32,
) -> BlkResult {
    let at = rq.sector();
    match (rq.op(), rq.transfer()) {
        (_, Transfer::FromDisk(mut to)) => {
            to.truncate(len);
            backing.read(at, to)
        }
        (_, Transfer::ToDisk(mut from)) => {
            from.truncate(len);
            backing.write(context.gfp(), at, from, rq.is_fua())
        }
        (Op::Flush, Transfer::None) => backing.flush(context.gfp()),
        (Op::Discard, Transfer::None) => backing.discard(at, len),
        (_, Transfer::None) => Err(BlkStatus::NOTSUPP),
    }
}
