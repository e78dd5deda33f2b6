// SPDX-License-Identifier: GPL-2.0

//! The time that an operation may take, however slow the controller is.

use kernel::{
    fatal_signal,
    io::poll::read_poll_timeout,
    prelude::*,
    time::{
        Delta,
        Instant,
        Monotonic, //
    },
};

/// The time of an operation that consists of several waits. It has begun when this was made.
pub(crate) struct Budget {
    begin: Instant<Monotonic>,
    limit: Delta,
    is_killable: bool,
}

impl Budget {
    /// For an operation that is over when its task is killed.
    pub(crate) fn killable(limit: Delta) -> Self {
        Self {
            begin: Instant::now(),
            limit,
            is_killable: true,
        }
    }

    /// For an operation that a signal must not cut short.
    pub(crate) fn uninterrupted(limit: Delta) -> Self {
        Self {
            is_killable: false,
            ..Self::killable(limit)
        }
    }

    /// Calls `poll` in intervals until `is_done`, and returns what it returned last.
    ///
    /// # Errors
    ///
    /// That of `poll`; `ETIMEDOUT` when `most` is over, or the budget; `EINTR` if the task is
    /// killed.
    pub(crate) fn wait<T>(
        &self,
        most: Delta,
        interval: Delta,
        mut poll: impl FnMut() -> Result<T>,
        is_done: impl Fn(&T) -> bool,
    ) -> Result<T> {
        let left = self.limit.as_nanos() - self.begin.elapsed().as_nanos();
        let time = most.as_nanos().min(left).max(0);
        let (value, _) = read_poll_timeout(
            || {
                let value = poll()?;
                let done = is_done(&value);
                if !done && self.is_killable && fatal_signal::is_pending() {
                    return Err(EINTR);
                }
                Ok((value, done))
            },
            |(_, done)| *done,
            interval,
            Delta::from_nanos(time),
        )?;
        Ok(value)
    }
}
