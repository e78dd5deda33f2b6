// SPDX-License-Identifier: GPL-2.0

//! A seeded pseudo-random number generator.

/// A reproducible sequence of pseudo-random numbers.
#[derive(Clone, Copy)]
pub(crate) struct Rng(u64);

/// Spreads the bits of `number`: the finalizer of `splitmix64`.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Rng {
    /// Returns the sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// Returns an independent sequence for each `stream`.
    pub(crate) fn fork(self, stream: u64) -> Self {
        Self(mix(self.0 ^ mix(stream.wrapping_add(1))))
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `bound`, or zero if `bound` is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// Returns true in one of `times` cases.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of `values`, or the default if there are none.
    pub(crate) fn pick<V: Copy + Default>(&mut self, values: &[V]) -> V {
        let index = self.below(values.len() as u64) as usize;
        values.get(index).copied().unwrap_or_default()
    }
}
