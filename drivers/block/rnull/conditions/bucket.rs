// SPDX-License-Identifier: GPL-2.0

//! The arithmetic of a limit on bandwidth.
//!
//! Pure: imports nothing of the kernel, so the same file is compiled and tested on the host.

/// Bytes for each tick and each MiB per second: a fiftieth, since a tick is 20 ms, rounded down.
const BYTES_PER_TICK: i64 = 20971;

/// What may be moved until the next tick.
///
/// Whoever comes while there is something left may take more than that, and leave a debt for later
/// ticks to pay: so a request passes however long it is, and the bandwidth is kept all the same.
pub(crate) struct Bucket {
    /// What a tick adds, and what fits.
    size: i64,
    /// What is left; a debt if negative.
    left: i64,
    /// Whether a tick is to come.
    ticking: bool,
}

impl Bucket {
    /// Makes a bucket for so many MiB per second; it is full, and no tick is to come.
    pub(crate) fn new(mbps: u32) -> Self {
        let size = i64::from(mbps) * BYTES_PER_TICK;
        Self {
            size,
            left: size,
            ticking: false,
        }
    }

    /// Takes `bytes`, unless there is nothing left. Then a tick is to come.
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        if self.left <= 0 {
            return false;
        }
        self.left -= i64::from(bytes);
        true
    }

    /// Whether the caller has to see to it that there is a tick, since it is the first to take.
    pub(crate) fn starts_ticking(&mut self) -> bool {
        let starts = !self.ticking && self.left < self.size;
        self.ticking |= starts;
        starts
    }

    /// Adds what a tick is worth. Returns whether there is to be another one.
    pub(crate) fn refill(&mut self) -> bool {
        self.ticking = self.left < self.size;
        self.left = self.left.saturating_add(self.size).min(self.size);
        self.ticking
    }

    /// Makes the bucket so large that nobody empties it any more.
    pub(crate) fn disable(&mut self) {
        self.size = i64::MAX;
        self.left = i64::MAX;
    }
}
