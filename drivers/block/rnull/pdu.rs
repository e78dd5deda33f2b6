// SPDX-License-Identifier: GPL-2.0

//! The driver's data of a request.

use crate::trace;
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

/// The driver's data of a request, which holds the result of one that is completed later.
///
/// It outlives the I/O, so [`Pdu::set_result`] overwrites what an earlier I/O left. The timeout
/// handler may run concurrently with the owner of the request, so the result is atomic. Relaxed
/// ordering is enough, since only the owner ends the request.
pub(crate) struct Pdu {
    /// The error number, or zero.
    errno: Atomic<i32>,
}

impl Pdu {
    /// Initializes the data of a new request.
    pub(crate) fn new() -> Self {
        Self {
            errno: Atomic::new(0),
        }
    }

    /// Sets the result to complete the request with.
    #[inline]
    pub(crate) fn set_result(&self, result: BlkResult) {
        match result {
            Ok(()) => self.errno.store(0, Relaxed),
            Err(status) => self.set_error(status),
        }
    }

    #[cold]
    #[inline(never)]
    fn set_error(&self, status: BlkStatus) {
        self.errno.store(Error::from(status).to_errno(), Relaxed);
    }

    /// Sets the result of a request that timed out. It overrides the one from `queue_rq`, which has
    /// returned: the block layer waits for that before it looks for timeouts.
    ///
    /// Returns whether the result was another one before.
    pub(crate) fn set_timed_out(&self) -> bool {
        let before = self.result();
        self.set_result(Err(BlkStatus::TIMEOUT));
        before != Err(BlkStatus::TIMEOUT)
    }

    /// Returns the result to complete the request with.
    #[inline]
    pub(crate) fn result(&self) -> BlkResult {
        match self.errno.load(Relaxed) {
            0 => Ok(()),
            errno => Err(BlkStatus::from(Error::from_errno(errno))),
        }
    }
}

/// Completes all `requests` with their results, in `batch` if possible. Returns their number.
pub(crate) fn end_all<T>(mut requests: RequestList<T>, batch: &mut IoCompletionBatch<'_, T>) -> u32
where
    T: Operations<RequestData = Pdu>,
{
    let mut count = 0;
    while let Some(rq) = requests.pop_front() {
        let result = rq.data().result();
        trace::rq_complete(&rq, result);
        batch.end(rq, result);
        count += 1;
    }
    count
}
