// SPDX-License-Identifier: GPL-2.0

//! What rnull remembers of a request while it is under way.

use kernel::{
    block::{
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
/// It outlives the I/O it serves: [`Command::begin`] wipes out what an earlier one left. The
/// timeout handler may run beside the owner of the request, so the state is atomic; it orders
/// nothing, for the end of the request is up to the owner alone.
pub(crate) struct Command {
    /// The error number of the first failure; zero if there was none.
    failure: Atomic<i32>,
}

impl Command {
    /// Makes the part of a request that was not used yet.
    pub(crate) fn new() -> Self {
        Self {
            failure: Atomic::new(0),
        }
    }

    /// Forgets the I/O before.
    #[inline]
    pub(crate) fn begin(&self) {
        self.failure.store(0, Relaxed);
    }

    /// Records how a part of the I/O went; of several failures the first one counts.
    #[inline]
    pub(crate) fn record(&self, outcome: BlkResult) {
        if let Err(status) = outcome {
            // That it fails means that there was a failure before.
            let _ = self
                .failure
                .cmpxchg(0, Error::from(status).to_errno(), Relaxed);
        }
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
