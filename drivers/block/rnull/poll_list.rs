// SPDX-License-Identifier: GPL-2.0

//! The requests of a polled hardware queue, until a task polls for them.

use crate::{
    pdu::{
        self,
        Pdu, //
    },
    trace, //
};
use kernel::{
    block::{
        mq::{
            IoCompletionBatch,
            Operations,
            PendingList,
            RequestList,
            StartedRequest,
            TimedOutRequest,
            TimeoutAction, //
        },
        BlkStatus, //
    },
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// The requests to complete at the next poll. The list is empty if the queue is not polled.
#[pin_data]
pub(crate) struct PollList<T: Operations> {
    #[pin]
    requests: SpinLock<PendingList<T>>,
}

impl<T: Operations<RequestData = Pdu>> PollList<T> {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            requests <- new_spinlock!(PendingList::new(), "PollList::requests"),
        })
    }

    /// Adds a request, until [`Self::complete_all`].
    pub(crate) fn push(&self, rq: StartedRequest<T>) {
        self.requests.lock().push_back(rq);
    }

    /// Adds all of `requests`.
    pub(crate) fn append(&self, requests: &mut RequestList<T>) {
        self.requests.lock().append(requests);
    }

    /// Completes all requests, in `batch` if possible. Returns their number.
    pub(crate) fn complete_all(&self, batch: &mut IoCompletionBatch<'_, T>) -> u32 {
        let requests = self.requests.lock().take();
        pdu::end_all(requests, batch)
    }

    /// Ends a request that timed out, if it is still in the list.
    pub(crate) fn time_out<'t>(
        &self,
        rq: TimedOutRequest<'t, T>,
    ) -> Result<TimeoutAction<'t>, TimedOutRequest<'t, T>> {
        // The CPU that removes the request from the list owns it.
        let removed = self.requests.lock().remove(rq);
        removed.map(|(rq, action)| {
            let result = Err(BlkStatus::TIMEOUT);
            trace::rq_complete(&rq, result);
            rq.end(result);
            action
        })
    }
}
