// SPDX-License-Identifier: GPL-2.0

//! The bad sectors of a device.

/// Whether each sector is bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBlocks(Vec<bool>);

impl BadBlocks {
    /// So many good sectors.
    pub fn new(sectors: u64) -> Self {
        Self(vec![false; sectors as usize])
    }

    /// Sets sectors from `first` to `last`, as far as there are some.
    pub fn set(&mut self, first: u64, last: u64, bad: bool) {
        let end = self.0.len() as u64;
        let (first, end) = (first.min(end), last.saturating_add(1).min(end));
        self.0[first as usize..end as usize].fill(bad);
    }

    /// The start of the first bad range that overlaps these sectors; it may start before them.
    pub fn first(&self, first: u64, count: u64) -> Option<u64> {
        let bad = (first..first + count).find(|&sector| self.0[sector as usize])?;
        let before = self.0[..bad as usize].iter().rev();
        Some(bad - before.take_while(|bad| **bad).count() as u64)
    }

    /// Clears the range that starts at `start`.
    pub fn clear_range(&mut self, start: u64) {
        let rest = self.0[start as usize..].iter_mut();
        rest.take_while(|bad| **bad).for_each(|bad| *bad = false);
    }

    /// Whether these are the sectors of a list of pairs of start, length. How sectors are merged to
    /// ranges is up to the kernel.
    pub fn are(&self, list: &str) -> bool {
        let numbers: Vec<u64> = list.split_whitespace().flat_map(str::parse).collect();
        let mut found = Self::new(self.0.len() as u64);
        for pair in numbers.chunks(2) {
            match *pair {
                [first, count] if count > 0 => found.set(first, first + count - 1, true),
                _ => return false,
            }
        }
        found == *self
    }

    /// The bad sectors.
    pub fn list(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|&sector| self.0[sector]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_from_inside() {
        let mut bad = BadBlocks::new(100);
        bad.set(10, 19, true);
        bad.set(15, 15, false);
        assert_eq!(bad.first(0, 10), None);
        assert_eq!(bad.first(12, 1), Some(10));
        assert_eq!(bad.first(15, 50), Some(16));
        bad.clear_range(10);
        assert!(bad.are("16 4") && bad.are("16 2 18 2") && !bad.are("16 3") && !bad.are(""));
    }
}
