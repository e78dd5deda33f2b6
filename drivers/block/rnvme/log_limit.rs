// SPDX-License-Identifier: GPL-2.0

//! A limit on messages, so that a controller cannot flood the log.

use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        Instant,
        Monotonic, //
    },
};

/// A limit on messages in [`INTERVAL`] milliseconds.
///
/// Several CPUs may use it at the same time, so there may be a few more.
pub(crate) struct LogLimit {
    /// The most messages in an interval.
    burst: u32,
    made: Instant<Monotonic>,
    /// When the interval began, in milliseconds since this was made.
    begin: Atomic<u64>,
    /// How many messages there were in the interval, also those that were not logged.
    count: Atomic<u32>,
}

/// As long as C's `DEFAULT_RATELIMIT_INTERVAL`.
const INTERVAL: u64 = 5000;

impl LogLimit {
    pub(crate) fn new(burst: u32) -> Self {
        Self {
            burst,
            made: Instant::now(),
            begin: Atomic::new(0),
            count: Atomic::new(0),
        }
    }

    /// Returns whether to log a message. If an interval has ended in which there were too many,
    /// `tell` is called with the number of those that were not logged. May be called anywhere.
    pub(crate) fn allows(&self, tell: impl FnOnce(u32)) -> bool {
        let now = self.made.elapsed().as_millis() as u64;
        if now.wrapping_sub(self.begin.load(Relaxed)) >= INTERVAL {
            self.begin.store(now, Relaxed);
            let suppressed = self.count.xchg(0, Relaxed).saturating_sub(self.burst);
            if suppressed > 0 {
                tell(suppressed);
            }
        }
        self.count.fetch_add(1, Relaxed) < self.burst
    }
}
