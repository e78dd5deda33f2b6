// SPDX-License-Identifier: GPL-2.0

//! What stands in the sectors of a device, as far as one can know.

use crate::pattern;

/// Bytes in a sector.
pub const SECTOR: u64 = 512;

/// Bytes in a page of a cache.
const PAGE: u64 = 4096;

/// What a write left in a sector: its seed, or nothing.
pub type Content = u32;

/// The content of what was never written, or forgotten.
pub const EMPTY: Content = 0;

/// Whether a sector that was read has a content.
fn is(content: Content, sector: u64, bytes: &[u8]) -> bool {
    match content {
        EMPTY => *bytes == [0; SECTOR as usize][..bytes.len()],
        seed => pattern::are(bytes, sector * SECTOR, seed),
    }
}

#[derive(Clone, Debug, Default)]
struct Cell {
    /// What is stored.
    stored: Content,
    /// What may be stored instead.
    perhaps: Vec<Content>,
    /// What stands before it in the cache.
    cached: Option<Content>,
}

impl Cell {
    fn store(&mut self, content: Content) {
        self.stored = content;
        self.perhaps.clear();
    }

    /// Its content of the cache, which is no longer there, may have been stored before.
    fn may_have_stored(&mut self, content: Content) {
        if self.stored != content && !self.perhaps.contains(&content) {
            self.perhaps.push(content);
        }
    }
}

/// The sectors of a device with those of its cache.
#[derive(Clone, Debug)]
pub struct Media {
    cells: Vec<Cell>,
    /// Whether something of the cache may have been stored before its time.
    leaks: bool,
}

impl Media {
    /// Sectors that were never written.
    pub fn new(sectors: u64) -> Self {
        Self {
            cells: vec![Cell::default(); sectors as usize],
            leaks: false,
        }
    }

    /// Writes a sector, into the cache or through it.
    pub fn write(&mut self, sector: u64, content: Content, cached: bool) {
        let cell = &mut self.cells[sector as usize];
        if cached {
            let before = cell.cached.replace(content);
            if let Some(before) = before.filter(|_| self.leaks) {
                cell.may_have_stored(before);
            }
        } else {
            cell.store(content);
            cell.cached = None;
        }
    }

    /// Moves the whole cache to where it belongs.
    pub fn flush(&mut self) {
        self.leaks = false;
        for cell in &mut self.cells {
            if let Some(content) = cell.cached.take() {
                cell.store(content);
            }
        }
    }

    /// Takes note that something of the cache may be stored now, for whatever reason.
    pub fn leak(&mut self) {
        self.leaks = true;
    }

    /// How many bytes the cache takes, in whole pages, once it has these ranges of bytes, too.
    pub fn cached_with(&self, more: &[(u64, u64)]) -> u64 {
        let pages = self.cells.chunks((PAGE / SECTOR) as usize);
        let cached = |&(at, page): &(u64, &[Cell])| {
            page.iter().any(|cell| cell.cached.is_some())
                || more.iter().any(|&(from, to)| from < at + PAGE && at < to)
        };
        let starts = (0..).step_by(PAGE as usize);
        starts.zip(pages).filter(cached).count() as u64 * PAGE
    }

    /// Power is lost, and the cache with it; what may have been stored may be there.
    pub fn lose_power(&mut self) {
        let leaks = std::mem::take(&mut self.leaks);
        for cell in &mut self.cells {
            if let Some(content) = cell.cached.take().filter(|_| leaks) {
                cell.may_have_stored(content);
            }
        }
    }

    /// Compares a sector with what was read from it; of several possibilities that one stays. On
    /// failure says what would have been right.
    pub fn read(&mut self, sector: u64, bytes: &[u8]) -> Result<(), Vec<Content>> {
        let cell = &mut self.cells[sector as usize];
        if let Some(content) = cell.cached {
            return match is(content, sector, bytes) {
                true => Ok(()),
                false => Err(vec![content]),
            };
        }
        let mut possible = std::iter::once(cell.stored).chain(cell.perhaps.iter().copied());
        match possible.find(|&content| is(content, sector, bytes)) {
            Some(found) => {
                cell.store(found);
                Ok(())
            }
            None => {
                let mut all = vec![cell.stored];
                all.append(&mut cell.perhaps.clone());
                Err(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(sector: u64, content: Content) -> Vec<u8> {
        match content {
            EMPTY => vec![0; 512],
            seed => pattern::bytes(sector * SECTOR, 512, seed),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut media = Media::new(8);
        assert!(media.read(3, &sector(3, EMPTY)).is_ok());
        media.write(3, 7, false);
        assert!(media.read(3, &sector(3, 7)).is_ok());
        // Not from another sector, nor from another write.
        assert_eq!(media.read(3, &sector(4, 7)), Err(vec![7]));
        assert_eq!(media.read(3, &sector(3, 8)), Err(vec![7]));
    }

    #[test]
    fn a_cache_is_lost() {
        let mut media = Media::new(24);
        media.write(1, 5, false);
        media.write(1, 6, true);
        media.write(8, 6, true);
        assert_eq!(media.cached_with(&[]), 8192);
        assert_eq!(media.cached_with(&[(4095, 4096), (8191, 8193)]), 12288);
        media.lose_power();
        assert_eq!(media.read(1, &sector(1, 6)), Err(vec![5]));
        assert!(media.read(1, &sector(1, 5)).is_ok());
        assert_eq!(media.cached_with(&[]), 0);
    }

    #[test]
    fn a_cache_that_leaks_may_be_lost_but_not_come_back() {
        let mut media = Media::new(8);
        media.write(1, 5, false);
        media.write(1, 6, true);
        assert_eq!(media.read(1, &sector(1, 5)), Err(vec![6]));
        media.leak();
        media.lose_power();
        assert!(media.read(1, &sector(1, 5)).is_ok());
        assert_eq!(media.read(1, &sector(1, 6)), Err(vec![5]));
    }

    #[test]
    fn what_leaked_may_be_older_than_what_is_lost() {
        let mut media = Media::new(8);
        media.write(1, 5, true);
        media.write(1, 6, true);
        media.leak();
        media.write(1, 7, true);
        assert_eq!(media.read(1, &sector(1, 6)), Err(vec![7]));
        media.lose_power();
        assert_eq!(media.read(1, &sector(1, 5)), Err(vec![EMPTY, 6, 7]));
        assert!(media.read(1, &sector(1, 6)).is_ok());
        assert_eq!(media.read(1, &sector(1, 7)), Err(vec![6]));
    }

    #[test]
    fn what_was_flushed_stays() {
        let mut media = Media::new(8);
        media.write(1, 6, true);
        media.flush();
        media.lose_power();
        assert_eq!(media.read(1, &sector(1, EMPTY)), Err(vec![6]));
    }
}
