// SPDX-License-Identifier: GPL-2.0

//! The token bucket behind the limit on bandwidth.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

/// Bytes per refill and MiB/s: a fiftieth of a MiB, since the period is 20 ms, rounded down.
const BYTES_PER_REFILL: i64 = 20971;

/// The bytes that may be transferred until the next refill.
///
/// A request may take more than is left, which leaves a debt for later refills. So a request of any
/// length passes, and the average bandwidth still holds.
pub(crate) struct TokenBucket {
    /// What a refill adds, and the most that fits.
    size: i64,
    /// What is left; a debt if negative.
    left: i64,
    /// Whether the refill timer is running.
    timer_active: bool,
}

impl TokenBucket {
    /// Makes a full bucket for `mbps` MiB per second. Its timer is not running.
    pub(crate) fn new(mbps: u32) -> Self {
        let size = i64::from(mbps) * BYTES_PER_REFILL;
        Self {
            size,
            left: size,
            timer_active: false,
        }
    }

    /// Takes `bytes`, unless the bucket is empty. While it is empty, the timer is running.
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        if self.left <= 0 {
            return false;
        }
        self.left -= i64::from(bytes);
        true
    }

    /// Returns whether the caller has to start the timer, and assumes that it does. Only the first
    /// caller that takes bytes from a full bucket has to.
    pub(crate) fn claim_timer(&mut self) -> bool {
        let start = !self.timer_active && self.left < self.size;
        self.timer_active |= start;
        start
    }

    /// Refills the bucket. Returns whether to restart the timer.
    pub(crate) fn refill(&mut self) -> bool {
        self.timer_active = self.left < self.size;
        self.left = self.left.saturating_add(self.size).min(self.size);
        self.timer_active
    }

    /// Lifts the limit: the bucket never gets empty again.
    pub(crate) fn disable(&mut self) {
        self.size = i64::MAX;
        self.left = i64::MAX;
    }
}
