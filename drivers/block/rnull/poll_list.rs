// SPDX-License-Identifier: GPL-2.0

//! The requests of a hardware queue that are served but for the end, which is polled for.

use crate::pdu::{
    self,
    Pdu, //
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

/// The requests that wait; not one of them if the hardware queue is not a polled one.
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

    /// Keeps a request until [`Self::reap`].
    pub(crate) fn push(&self, rq: StartedRequest<T>) {
        self.requests.lock().push_back(rq);
    }

    /// Keeps all of `requests` until then.
    pub(crate) fn append(&self, requests: &mut RequestList<T>) {
        self.requests.lock().append(requests);
    }

    /// Ends the requests that wait, together where that can be; returns how many there were.
    pub(crate) fn reap(&self, batch: &mut IoCompletionBatch<'_, T>) -> u32 {
        let requests = self.requests.lock().take();
        pdu::end_all(requests, batch)
    }

    /// Ends a request that was not polled for in time, if it is still here.
    pub(crate) fn give_up<'t>(
        &self,
        rq: TimedOutRequest<'t, T>,
    ) -> Result<TimeoutAction<'t>, TimedOutRequest<'t, T>> {
        // What takes it out of the list is what ends it.
        let taken = self.requests.lock().remove(rq);
        taken.map(|(rq, done)| {
            rq.end(Err(BlkStatus::TIMEOUT));
            done
        })
    }
}
