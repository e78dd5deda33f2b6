// SPDX-License-Identifier: GPL-2.0

//! The backing store of a disk.

use crate::{
    cache::WriteCache,
    store::Store, //
};
use kernel::{
    alloc::Flags,
    block::{
        bio::{
            FromDisk,
            Segments,
            ToDisk, //
        },
        BlkResult,
        BlkStatus,
        Sector,
        SECTOR_SHIFT, //
    },
    sync::Arc, //
};

/// What keeps the data of a disk. It is chosen at power-on.
///
/// A disk that keeps no data has none: writes are dropped, reads leave the buffer as it was.
pub(crate) enum Backing {
    /// Pages, which are allocated by the first write. Sectors never written read as zeros.
    Memory(Arc<Store>),
    /// The same behind a write cache, whose content is lost at power-off.
    Cached(WriteCache),
}

impl Backing {
    /// Reads from sector `at` on, as many bytes as `to` has room for.
    #[inline(always)]
    pub(crate) fn read(&self, at: Sector, to: Segments<'_, FromDisk>) -> BlkResult {
        let (at, len) = (first_byte(at), to.remaining());
        match self {
            Self::Memory(store) => store.read(at, len, &to)?,
            Self::Cached(cache) => cache.read(at, len, &mut to.clone())?,
        }
        Ok(())
    }

    /// Writes all bytes of `from` to sector `at` on; with `fua`, to the store as well as to the
    /// cache.
    ///
    /// Memory is allocated with `flags`. A write fails when out of memory. The disk is full then:
    /// `BLK_STS_NOSPC`.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        flags: Flags,
        at: Sector,
        from: Segments<'_, ToDisk>,
        fua: bool,
    ) -> BlkResult {
        let (at, len) = (first_byte(at), from.remaining());
        let written = match self {
            Self::Memory(store) => store.write(flags, at, len, &from),
            Self::Cached(cache) => cache.write(flags, at, len, &mut from.clone(), fua),
        };
        written.map_err(|_| BlkStatus::NOSPC)
    }

    /// Discards `len` bytes from sector `at` on, which read as zeros afterwards.
    pub(crate) fn discard(&self, at: Sector, len: u32) -> BlkResult {
        match self {
            Self::Memory(store) => store.discard(first_byte(at), len)?,
            Self::Cached(cache) => cache.discard(first_byte(at), len)?,
        }
        Ok(())
    }

    /// Writes the cache back, so that the data survives a power-off. Memory is allocated with
    /// `flags`.
    pub(crate) fn flush(&self, flags: Flags) -> BlkResult {
        match self {
            Self::Memory(_) => (),
            Self::Cached(cache) => cache.flush(flags)?,
        }
        Ok(())
    }
}

/// Returns the offset of a sector in bytes. No disk has one at which that does not fit.
#[inline(always)]
fn first_byte(at: Sector) -> u64 {
    at.0 << SECTOR_SHIFT
}
