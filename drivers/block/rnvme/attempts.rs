// SPDX-License-Identifier: GPL-2.0

//! What was already tried for a request.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// What was tried for a request.
///
/// ```text
///     31           16 15        14       13          0
///     identifier      aborted   waited   retries
/// ```
///
/// The identifier is that of the last command that was aborted, or that has waited for others to be
/// aborted. Each command has another one, so what is left here of an earlier command is of no
/// effect.
pub(crate) struct Attempts(Atomic<u32>);

const RETRIES: u32 = 0x3fff;
const WAITED: u32 = 0x4000;
const ABORTED: u32 = 0x8000;

impl Attempts {
    pub(crate) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Returns whether nothing was tried, and nothing forbidden.
    #[inline]
    pub(crate) fn is_clear(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// Says that the request is not sent again.
    pub(crate) fn forbid_retries(&self) {
        self.0.store(RETRIES, Relaxed);
    }

    /// Forgets all, when the request ends.
    pub(crate) fn clear(&self) {
        if self.0.load(Relaxed) != 0 {
            self.0.store(0, Relaxed);
        }
    }

    /// Counts that the request is sent again; false if that has happened as often as `most`.
    pub(crate) fn count_retry(&self, most: u32) -> bool {
        let retries = self.0.load(Relaxed) & RETRIES;
        self.0.store((retries + 1).min(RETRIES), Relaxed);
        retries < most
    }

    /// Returns whether the command with an identifier was aborted.
    pub(crate) fn is_aborted(&self, cid: u16) -> bool {
        self.has(cid, ABORTED)
    }

    /// Returns whether the command with an identifier has waited.
    pub(crate) fn has_waited(&self, cid: u16) -> bool {
        self.has(cid, WAITED)
    }

    /// Remembers that the command with an identifier is aborted, unless it has just completed.
    pub(crate) fn set_aborted(&self, cid: u16) {
        self.set(cid, ABORTED);
    }

    /// Remembers that the command with an identifier waits, unless it has just completed.
    pub(crate) fn set_waited(&self, cid: u16) {
        self.set(cid, WAITED);
    }

    fn has(&self, cid: u16, what: u32) -> bool {
        let last = self.0.load(Relaxed);
        last & what != 0 && last >> 16 == u32::from(cid)
    }

    fn set(&self, cid: u16, what: u32) {
        let last = self.0.load(Relaxed);
        let new = last & RETRIES | what | u32::from(cid) << 16;
        // The retries may be those of another request by now.
        let _ = self.0.cmpxchg(last, new, Relaxed);
    }
}
