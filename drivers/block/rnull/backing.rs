// SPDX-License-Identifier: GPL-2.0

//! What stands behind the sectors of a disk.

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

/// The backing of a disk; chosen at power-on.
pub(crate) enum Backing {
    /// Nothing: writes vanish, reads leave memory as it was.
    Nothing,
    /// Pages that come with the first write; what was never written reads as zeros.
    Memory(Arc<PageStore>),
    /// The same behind a cache, which is forgotten at power-off.
    Cached(Pin<KBox<WriteCache>>),
}

impl Backing {
    /// Fills the memory of a read with `len` bytes from `at` on.
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

    /// Keeps `len` bytes of a write from `at` on, past the cache if `fua`; where no page is left,
    /// the disk is full.
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

    /// Forgets `len` bytes from `at` on, which are zeros then.
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

    /// Makes what was written before survive a power-off.
    pub(crate) fn flush<C: Context>(&self, context: QueueContext<'_, C>) -> BlkResult {
        match self {
            Self::Nothing | Self::Memory(_) => (),
            Self::Cached(cache) => cache.flush(context)?,
        }
        Ok(())
    }
}
