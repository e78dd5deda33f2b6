// SPDX-License-Identifier: GPL-2.0

//! A request cannot be added to a batch before its memory is unmapped.

use kernel::{
    block::mq::{IoCompletionBatch, MappedRequest, Operations},
    sync::rcu,
};

pub fn case<T: Operations>(rq: MappedRequest<T>, batch: &mut IoCompletionBatch<'_, T>) {
    #[cfg(bad)]
    batch.end(rq, Ok(())); //~ ERROR E0277: the trait bound `MappedRequest<T>: EndableRequest` is not satisfied
    #[cfg(not(bad))]
    batch.end(rq.unmap(&rcu::read_lock()), Ok(()));
}
