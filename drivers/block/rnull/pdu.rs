// SPDX-License-Identifier: GPL-2.0

//! What rnull remembers of a request while it is under way.

use kernel::{
    block::{
        mq::{
            IoCompletionBatch,
            Operations,
            RequestList, //
        },
        BlkResult,
        BlkStatus, //
    },
    error::Error,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// The driver's part of each request.
///
/// It is used for requests that do not end where they were served, and outlives the I/O:
/// [`Pdu::keep`] wipes out what an earlier one left. The timeout handler may then run beside
/// the owner of the request, so the state is atomic; it orders nothing, for the end of the request
/// is up to the owner alone.
pub(crate) struct Pdu {
    /// The error number of the failure; zero if there was none.
    failure: Atomic<i32>,
}

impl Pdu {
    /// Makes the part of a request that was not used yet.
    pub(crate) fn new() -> Self {
        Self {
            failure: Atomic::new(0),
        }
    }

    /// Keeps how the I/O went until it ends.
    #[inline]
    pub(crate) fn keep(&self, outcome: BlkResult) {
        let failure = outcome.map_or_else(|status| Error::from(status).to_errno(), |()| 0);
        self.failure.store(failure, Relaxed);
    }

    /// Notes that the I/O takes too long. That counts, whatever became of it: the block layer asks
    /// only when the callback is over in which that was kept.
    pub(crate) fn mark_late(&self) {
        self.keep(Err(BlkStatus::TIMEOUT));
    }

    /// Returns how the I/O went.
    #[inline]
    pub(crate) fn outcome(&self) -> BlkResult {
        match self.failure.load(Relaxed) {
            0 => Ok(()),
            number => Err(BlkStatus::from(Error::from_errno(number))),
        }
    }
}

/// Ends requests as was kept with each, together where that can be; returns how many there were.
pub(crate) fn end_all<T>(mut requests: RequestList<T>, batch: &mut IoCompletionBatch<'_, T>) -> u32
where
    T: Operations<RequestData = Pdu>,
{
    let mut count = 0;
    while let Some(rq) = requests.pop_front() {
        let outcome = rq.data().outcome();
        batch.end(rq, outcome);
        count += 1;
    }
    count
}
