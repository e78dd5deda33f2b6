// SPDX-License-Identifier: GPL-2.0

//! The stage that carries out an operation.

use crate::backing::Backing;
use kernel::block::{
    bio::Transfer,
    mq::{
        Context,
        Op,
        Scope, //
    },
    BlkResult,
    BlkStatus,
    Sector,
    Sectors, //
};

/// Moves the start of `data` to or from `len` sectors from `at` on, as `op` asks.
pub(crate) fn transfer<C: Context>(
    backing: &Backing,
    scope: Scope<'_, C>,
    op: Op,
    at: Sector,
    len: Sectors,
    data: Transfer<'_>,
) -> BlkResult {
    match (op, data) {
        (_, Transfer::FromDisk(to)) => backing.read(at, len, to),
        (_, Transfer::ToDisk(from)) => backing.write(scope, at, len, from),
        // There is no cache: whatever was written is where it belongs.
        (Op::Flush, Transfer::None) => Ok(()),
        (_, Transfer::None) => Err(BlkStatus::NOTSUPP),
    }
}
