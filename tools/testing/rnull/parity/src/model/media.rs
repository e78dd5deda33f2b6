// SPDX-License-Identifier: GPL-2.0

//! The data of a device, as far as it is known.

use crate::pattern;

/// Bytes in a sector.
pub const SECTOR: u64 = 512;

/// Bytes in a page of a cache.
const PAGE: u64 = 4096;

/// The data of a sector: the seed of its last write, or [`EMPTY`].
pub type Content = u32;

/// The content of a sector that was never written, or was discarded.
pub const EMPTY: Content = 0;

/// Whether the bytes read from a sector are a content.
fn is(content: Content, sector: u64, bytes: &[u8]) -> bool {
    match content {
        EMPTY => *bytes == [0; SECTOR as usize][..bytes.len()],
        seed => pattern::are(bytes, sector * SECTOR, seed),
    }
}

#[derive(Clone, Debug, Default)]
struct Cell {
    /// The content on the medium.
    stored: Content,
    /// What may be on the medium instead.
    possible: Vec<Content>,
    /// The content in the cache, if it is there.
    cached: Option<Content>,
}

impl Cell {
    fn store(&mut self, content: Content) {
        self.stored = content;
        self.possible.clear();
    }

    /// The content, which is no longer in the cache, may have been written back before.
    fn may_be(&mut self, content: Content) {
        if self.stored != content && !self.possible.contains(&content) {
            self.possible.push(content);
        }
    }
}

/// The sectors of a device with those of its cache.
#[derive(Clone, Debug)]
pub struct Media {
    cells: Vec<Cell>,
    /// Whether something of the cache may have been written back without a flush.
    evicts: bool,
}

impl Media {
    pub fn new(sectors: u64) -> Self {
        Self {
            cells: vec![Cell::default(); sectors as usize],
            evicts: false,
        }
    }

    /// Writes a sector, into the cache or through it.
    pub fn write(&mut self, sector: u64, content: Content, cached: bool) {
        let cell = &mut self.cells[sector as usize];
        if cached {
            let before = cell.cached.replace(content);
            if let Some(before) = before.filter(|_| self.evicts) {
                cell.may_be(before);
            }
        } else {
            cell.store(content);
            cell.cached = None;
        }
    }

    /// Writes the whole cache back.
    pub fn flush(&mut self) {
        self.evicts = false;
        for cell in &mut self.cells {
            if let Some(content) = cell.cached.take() {
                cell.store(content);
            }
        }
    }

    /// Something of the cache may be written back now, for whatever reason.
    pub fn may_write_back(&mut self) {
        self.evicts = true;
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

    /// The cache is lost, but for what may have been written back.
    pub fn lose_power(&mut self) {
        let evicts = std::mem::take(&mut self.evicts);
        for cell in &mut self.cells {
            if let Some(content) = cell.cached.take().filter(|_| evicts) {
                cell.may_be(content);
            }
        }
    }

    /// Compares a sector with what was read from it, which tells which of several contents it has.
    /// The error is what would have been right.
    pub fn read(&mut self, sector: u64, bytes: &[u8]) -> Result<(), Vec<Content>> {
        let cell = &mut self.cells[sector as usize];
        if let Some(content) = cell.cached {
            return match is(content, sector, bytes) {
                true => Ok(()),
                false => Err(vec![content]),
            };
        }
        let mut all = vec![cell.stored];
        all.extend(&cell.possible);
        match all.iter().find(|&&content| is(content, sector, bytes)) {
            Some(found) => {
                cell.store(*found);
                Ok(())
            }
            None => Err(all),
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
    fn what_was_lost_does_not_come_back() {
        let mut media = Media::new(8);
        media.write(1, 5, false);
        media.write(1, 6, true);
        assert_eq!(media.read(1, &sector(1, 5)), Err(vec![6]));
        media.may_write_back();
        media.lose_power();
        assert!(media.read(1, &sector(1, 5)).is_ok());
        assert_eq!(media.read(1, &sector(1, 6)), Err(vec![5]));
    }

    #[test]
    fn what_was_written_back_may_be_older_than_what_is_lost() {
        let mut media = Media::new(8);
        media.write(1, 5, true);
        media.write(1, 6, true);
        media.may_write_back();
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
