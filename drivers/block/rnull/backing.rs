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
        Sector, //
    },
    sync::Arc, //
};

/// What keeps the data of a disk. It is chosen at power-on.
pub(crate) enum Backing {
    /// Nothing. Writes are dropped, reads leave the buffer as it was.
    Nothing,
    /// Pages, which are allocated by the first write. Sectors never written read as zeros.
    Memory(Arc<Store>),
    /// The same behind a write cache, whose content is lost at power-off.
    Cached(WriteCache),
}

impl Backing {
    /// Reads `len` bytes from sector `at` on.
    #[inline(always)]
    pub(crate) fn read(&self, at: Sector, len: u32, to: Segments<'_, FromDisk>) -> BlkResult {
        match self {
            Self::Nothing => (),
            Self::Memory(store) => store.read(at.bytes(), len, &to)?,
            Self::Cached(cache) => cache.read(at.bytes(), len, &mut to.clone())?,
        }
        Ok(())
    }

    /// Writes `len` bytes from sector `at` on; with `fua`, to the store as well as to the cache.
    ///
    /// Memory is allocated with `flags`. A write fails when out of memory. The disk is full then:
    /// `BLK_STS_NOSPC`.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        flags: Flags,
        at: Sector,
        len: u32,
        from: Segments<'_, ToDisk>,
        fua: bool,
    ) -> BlkResult {
        let at = at.bytes();
        let written = match self {
            Self::Nothing => return Ok(()),
            Self::Memory(store) => store.write(flags, at, len, &from),
            Self::Cached(cache) => cache.write(flags, at, len, &mut from.clone(), fua),
        };
        written.map_err(|_| BlkStatus::NOSPC)
    }

    /// Whether data is kept.
    pub(crate) fn keeps_data(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Discards `len` bytes from sector `at` on, which read as zeros afterwards.
    pub(crate) fn discard(&self, at: Sector, len: u32) -> BlkResult {
        match self {
            Self::Nothing => (),
            Self::Memory(store) => store.discard(at.bytes(), len)?,
            Self::Cached(cache) => cache.discard(at.bytes(), len)?,
        }
        Ok(())
    }

    /// Writes the cache back, so that the data survives a power-off. Memory is allocated with
    /// `flags`.
    pub(crate) fn flush(&self, flags: Flags) -> BlkResult {
        match self {
            Self::Nothing | Self::Memory(_) => (),
            Self::Cached(cache) => cache.flush(flags)?,
        }
        Ok(())
    }
}
