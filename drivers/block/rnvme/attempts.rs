// SPDX-License-Identifier: GPL-2.0

//! What was already tried for a request.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// What was tried for a request: how often it was sent again.
pub(crate) struct Attempts(Atomic<u32>);

impl Attempts {
    pub(crate) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Forgets all, when the request ends.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.0.load(Relaxed) != 0 {
            self.0.store(0, Relaxed);
        }
    }

    /// Counts that the request is sent again; false if that has happened as often as `most`.
    pub(crate) fn count_retry(&self, most: u32) -> bool {
        let retries = self.0.load(Relaxed);
        self.0.store(retries.saturating_add(1), Relaxed);
        retries < most
    }
}
