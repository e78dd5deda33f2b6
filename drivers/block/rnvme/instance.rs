// SPDX-License-Identifier: GPL-2.0

//! The numbers of controllers, as they appear in the names of disks.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
};

/// The numbers that are in use, a bit for each.
static USED: [Atomic<u64>; 16] = [const { Atomic::new(0) }; 16];

/// The number of a controller, which no other one has while this exists.
pub(crate) struct Instance(usize);

impl Instance {
    /// Takes the lowest number that is free.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if there is none.
    pub(crate) fn new() -> Result<Self> {
        for (at, word) in USED.iter().enumerate() {
            let mut old = word.load(Relaxed);
            while old != u64::MAX {
                let bit = old.trailing_ones();
                match word.cmpxchg(old, old | 1 << bit, Full) {
                    Ok(_) => return Ok(Self(at * 64 + bit as usize)),
                    Err(now) => old = now,
                }
            }
        }
        Err(ENOSPC)
    }

    /// Returns the number.
    pub(crate) fn number(&self) -> usize {
        self.0
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let word = &USED[self.0 / 64];
        let mut old = word.load(Relaxed);
        while let Err(now) = word.cmpxchg(old, old & !(1 << (self.0 % 64)), Full) {
            old = now;
        }
    }
}
