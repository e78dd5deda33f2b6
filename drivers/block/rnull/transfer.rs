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

/// Carries out the operation of a request, on its first `len` bytes.
pub(crate) fn transfer<T: Operations>(
    backing: &Backing,
    context: QueueContext<'_, T::Context>,
    rq: &StartedRequest<T>,
    len: u32,
) -> BlkResult {
    let at = rq.sector();
    match (rq.op(), rq.transfer()) {
        (_, Transfer::FromDisk(to)) => backing.read(at, len, to),
        (_, Transfer::ToDisk(from)) => backing.write(context.gfp(), at, len, from, rq.is_fua()),
        (Op::Flush, Transfer::None) => backing.flush(context.gfp()),
        (Op::Discard, Transfer::None) => backing.discard(at, len),
        (_, Transfer::None) => Err(BlkStatus::NOTSUPP),
    }
}
