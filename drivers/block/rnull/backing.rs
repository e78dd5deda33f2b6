// SPDX-License-Identifier: GPL-2.0

//! The backing store of a disk.

use kernel::{
    block::{
        bio::{
            FromDisk,
            Segments,
            ToDisk, //
        },
        mq::{
            Context,
            QueueContext, //
        },
        BlkResult,
        BlkStatus,
        Sector, //
    },
    page_store::{
        PageStore,
        WriteCache, //
    },
    prelude::*,
    sync::Arc, //
};

/// What keeps the data of a disk. It is chosen at power-on.
pub(crate) enum Backing {
    /// Nothing. Writes are dropped, reads leave the buffer as it was.
    Nothing,
    /// Pages, which are allocated by the first write. Sectors never written read as zeros.
    Memory(Arc<PageStore>),
    /// The same behind a write cache, whose content is lost at power-off.
    Cached(Pin<KBox<WriteCache>>),
}

impl Backing {
    /// Reads `len` bytes from sector `at` on.
    #[inline(always)]
    pub(crate) fn read<C: Context>(
        &self,
        context: QueueContext<'_, C>,
        at: Sector,
        len: u32,
        mut to: Segments<'_, FromDisk>,
    ) -> BlkResult {
        match self {
            Self::Nothing => Ok(()),
            Self::Memory(pages) => {
                pages.read(context, at.bytes(), &mut to, len)?;
                Ok(())
            }
            Self::Cached(cache) => {
                cache.read(context, at.bytes(), &mut to, len)?;
                Ok(())
            }
        }
    }

    /// Writes `len` bytes from sector `at` on; with `fua`, to the store as well as to the cache.
    ///
    /// A write fails when out of memory. The disk is full then: `BLK_STS_NOSPC`.
    #[inline(always)]
    pub(crate) fn write<C: Context>(
        &self,
        context: QueueContext<'_, C>,
        at: Sector,
        len: u32,
        mut from: Segments<'_, ToDisk>,
        fua: bool,
    ) -> BlkResult {
        let at = at.bytes();
        let written = match self {
            Self::Nothing => return Ok(()),
            Self::Memory(pages) => pages.write(context, at, &mut from, len),
            Self::Cached(cache) if fua => cache.write_through(context, at, &mut from, len),
            Self::Cached(cache) => cache.write(context, at, &mut from, len),
        };
        written.map_err(|_| BlkStatus::NOSPC)
    }

    /// Discards `len` bytes from sector `at` on, which read as zeros afterwards.
    pub(crate) fn discard<C: Context>(
        &self,
        context: QueueContext<'_, C>,
        at: Sector,
        len: u32,
    ) -> BlkResult {
        match self {
            Self::Nothing => (),
            Self::Memory(pages) => pages.remove(context, at.bytes(), len.into())?,
            Self::Cached(cache) => cache.remove(context, at.bytes(), len.into())?,
        }
        Ok(())
    }

    /// Writes the cache back, so that the data survives a power-off.
    pub(crate) fn flush<C: Context>(&self, context: QueueContext<'_, C>) -> BlkResult {
        match self {
            Self::Nothing | Self::Memory(_) => (),
            Self::Cached(cache) => cache.flush(context)?,
        }
        Ok(())
    }
}
