// SPDX-License-Identifier: GPL-2.0

//! The stage that carries out an operation.

use crate::backing::Backing;
use kernel::block::{
    bio::Transfer,
    mq::{
        Op,
        Operations,
        Scope,
        Started, //
    },
    BlkResult,
    BlkStatus, //
};

/// Does what a request asks for with its first `len` bytes.
pub(crate) fn transfer<T: Operations>(
    backing: &Backing,
    scope: Scope<'_, T::Context>,
    rq: &Started<T>,
    len: u32,
) -> BlkResult {
    let at = rq.sector();
    match (rq.op(), rq.transfer()) {
        (_, Transfer::FromDisk(to)) => backing.read(scope, at, len, to),
        (_, Transfer::ToDisk(from)) => backing.write(scope, at, len, from, rq.is_fua()),
        (Op::Flush, Transfer::None) => backing.flush(scope),
        (Op::Discard, Transfer::None) => backing.discard(scope, at, len),
        (_, Transfer::None) => Err(BlkStatus::NOTSUPP),
    }
}
