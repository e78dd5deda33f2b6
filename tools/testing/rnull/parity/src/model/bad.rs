// SPDX-License-Identifier: GPL-2.0

//! Which sectors are bad.

use std::fmt;

/// A mark for each sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad(Vec<bool>);

impl Bad {
    /// So many good sectors.
    pub fn new(sectors: u64) -> Self {
        Self(vec![false; sectors as usize])
    }

    /// Marks sectors from `first` to `last`, those that are there.
    pub fn mark(&mut self, first: u64, last: u64, bad: bool) {
        let end = self.0.len() as u64;
        let (first, end) = (first.min(end), last.saturating_add(1).min(end));
        self.0[first as usize..end as usize].fill(bad);
    }

    /// Where the first range begins that has a sector in common with these; it may begin earlier.
    pub fn first(&self, first: u64, count: u64) -> Option<u64> {
        let mut sectors = first..first + count;
        let mut start = sectors.find(|&s| self.0[s as usize])?;
        while start > 0 && self.0[start as usize - 1] {
            start -= 1;
        }
        Some(start)
    }

    /// Makes the range that begins at `start` good again.
    pub fn clear_range(&mut self, start: u64) {
        let rest = &mut self.0[start as usize..];
        let bad = rest.iter_mut().take_while(|bad| **bad);
        bad.for_each(|bad| *bad = false);
    }

    /// Whether these are the sectors of a list of pairs of start, length. How the sectors are put
    /// together into ranges is up to the kernel.
    pub fn are(&self, list: &str) -> bool {
        let numbers: Vec<u64> = list.split_whitespace().flat_map(str::parse).collect();
        let mut found = Self::new(self.0.len() as u64);
        for pair in numbers.chunks(2) {
            match *pair {
                [first, count] if count > 0 => found.mark(first, first + count - 1, true),
                _ => return false,
            }
        }
        found == *self
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sector, _) in self.0.iter().enumerate().filter(|(_, bad)| **bad) {
            write!(f, "{sector} ")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_from_inside() {
        let mut bad = Bad::new(100);
        bad.mark(10, 19, true);
        bad.mark(15, 15, false);
        assert_eq!(bad.first(0, 10), None);
        assert_eq!(bad.first(12, 1), Some(10));
        assert_eq!(bad.first(15, 50), Some(16));
        bad.clear_range(10);
        assert!(bad.are("16 4") && bad.are("16 2 18 2") && !bad.are("16 3") && !bad.are(""));
    }
}
