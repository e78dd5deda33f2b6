// SPDX-License-Identifier: GPL-2.0

//! What stands in the sectors of a device, as far as one can know.

use crate::pattern;

/// Bytes in a sector.
pub const SECTOR: u64 = 512;

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
}

/// The sectors of a device with those of its cache.
#[derive(Clone, Debug)]
pub struct Media(Vec<Cell>);

impl Media {
    /// Sectors that were never written.
    pub fn new(sectors: u64) -> Self {
        Self(vec![Cell::default(); sectors as usize])
    }

    /// Writes a sector, into the cache or through it.
    pub fn write(&mut self, sector: u64, content: Content, cached: bool) {
        let cell = &mut self.0[sector as usize];
        if cached {
            cell.cached = Some(content);
        } else {
            cell.store(content);
            cell.cached = None;
        }
    }

    /// Moves the whole cache to where it belongs.
    pub fn flush(&mut self) {
        for cell in &mut self.0 {
            if let Some(content) = cell.cached.take() {
                cell.store(content);
            }
        }
    }

    /// Power is lost: what was cached may have been stored already, or not.
    pub fn lose_power(&mut self) {
        for cell in &mut self.0 {
            if let Some(content) = cell.cached.take() {
                if cell.stored != content && !cell.perhaps.contains(&content) {
                    cell.perhaps.push(content);
                }
            }
        }
    }

    /// Compares a sector with what was read from it; of several possibilities that one stays. On
    /// failure says what would have been right.
    pub fn read(&mut self, sector: u64, bytes: &[u8]) -> Result<(), Vec<Content>> {
        let cell = &mut self.0[sector as usize];
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
    fn a_cache_may_be_lost_but_not_come_back() {
        let mut media = Media::new(8);
        media.write(1, 5, false);
        media.write(1, 6, true);
        assert_eq!(media.read(1, &sector(1, 5)), Err(vec![6]));
        media.lose_power();
        assert!(media.read(1, &sector(1, 5)).is_ok());
        assert_eq!(media.read(1, &sector(1, 6)), Err(vec![5]));
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
