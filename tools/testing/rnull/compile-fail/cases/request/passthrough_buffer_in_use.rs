// SPDX-License-Identifier: GPL-2.0

//! The buffer of a passthrough request cannot be accessed before the request has ended.

use kernel::{
    alloc::KVVec,
    block::mq::{Operations, Passthrough},
    error::{code::EINVAL, Result},
};

pub fn case<T: Operations>(rq: Passthrough<'_, T>, buffer: KVVec<u8>) -> Result<usize> {
    let rq = rq.with_buffer(buffer)?;
    #[cfg(bad)]
    let _ = buffer.len(); //~ ERROR E0382: borrow of moved value: `buffer`
    let rq = rq.execute()?;
    Ok(rq.buffer().ok_or(EINVAL)?.len())
}
