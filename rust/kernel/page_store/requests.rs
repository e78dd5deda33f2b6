// SPDX-License-Identifier: GPL-2.0

//! The use of a page store, with a cache or without, by requests.
//!
//! A request says by its [`QueueContext`] that it is served by a task, and whether that may sleep;
//! it does not say whether interrupts are enabled. Its memory may be less than it asks for.

use super::{
    cache::WriteCache,
    context::interrupts_on,
    store::PageStore, //
};
use crate::{
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
    },
    prelude::*,
};

impl PageStore {
    /// Copies `len` bytes, from byte `at` of the store on, to the memory of a read request.
    ///
    /// The memory is consumed from its start.
    ///
    /// # Errors
    ///
    /// - [`EBUSY`] where interrupts are disabled.
    /// - [`EINVAL`] if fewer than `len` bytes of memory are left, or `at + len` is beyond what can
    ///   be addressed; nothing is copied then.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::{bio::{FromDisk, Segments}, mq::{Context, QueueContext}},
    ///     page_store::PageStore,
    ///     prelude::*,
    /// };
    ///
    /// fn serve<C: Context>(
    ///     store: &PageStore,
    ///     context: QueueContext<'_, C>,
    ///     at: u64,
    ///     mut memory: Segments<'_, FromDisk>,
    /// ) -> Result {
    ///     let len = memory.remaining();
    ///     store.read(context, at, &mut memory, len)
    /// }
    /// ```
    #[inline(always)]
    pub fn read<C: Context>(
        &self,
        _task: QueueContext<'_, C>,
        at: u64,
        to: &mut Segments<'_, FromDisk>,
        len: u32,
    ) -> Result {
        self.read_segments(at, to, len)
    }

    /// As [`Self::read`], for a caller that is known to be a task.
    // What a request of a page or less needs is a part of the caller: it is less than a call costs.
    #[inline(always)]
    pub(super) fn read_segments(
        &self,
        at: u64,
        to: &mut Segments<'_, FromDisk>,
        len: u32,
    ) -> Result {
        interrupts_on()?;
        if len > to.remaining() {
            return Err(EINVAL);
        }
        if let Some(done) = self.read_at_once(at, to, len) {
            return done;
        }
        to.with_copy(|to| self.read_chunks(at, to, len))
    }

    /// As [`Self::read_segments`], of any pages.
    #[inline(never)]
    fn read_chunks(&self, at: u64, to: &mut Segments<'_, FromDisk>, len: u32) -> Result {
        self.read_memory(at, len as usize, to)
    }

    /// Copies `len` bytes from the memory of a write request to the store, from byte `at` on.
    ///
    /// The memory is consumed from its start. Pages that are missing are allocated, by waiting for
    /// memory if `context` allows it (`GFP_NOIO`) and the kernel knows of no reason not to, as a
    /// spinlock, before any byte of their block is copied.
    ///
    /// # Errors
    ///
    /// - [`EBUSY`] where interrupts are disabled.
    /// - [`EINVAL`] if fewer than `len` bytes of memory are left, or `at + len` is beyond what can
    ///   be addressed; nothing is copied then.
    /// - [`ENOMEM`] if there is no page for a block. Blocks before it were written, and their bytes
    ///   consumed; that one and those after it are as they were.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::{bio::{Segments, ToDisk}, mq::{Context, QueueContext}},
    ///     page_store::PageStore,
    ///     prelude::*,
    /// };
    ///
    /// fn serve<C: Context>(
    ///     store: &PageStore,
    ///     context: QueueContext<'_, C>,
    ///     at: u64,
    ///     mut memory: Segments<'_, ToDisk>,
    /// ) -> Result {
    ///     let len = memory.remaining();
    ///     store.write(context, at, &mut memory, len)
    /// }
    /// ```
    #[inline(always)]
    pub fn write<C: Context>(
        &self,
        context: QueueContext<'_, C>,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        self.write_segments(context.may_sleep(), at, from, len)
    }

    /// As [`Self::write`], for a caller that is known to sleep or not.
    #[inline(always)]
    pub(super) fn write_segments(
        &self,
        may_sleep: bool,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        interrupts_on()?;
        if len > from.remaining() {
            return Err(EINVAL);
        }
        if let Some(done) = self.write_at_once(may_sleep, at, from, len) {
            return done;
        }
        from.with_copy(|from| self.write_chunks(may_sleep, at, from, len))
    }

    /// As [`Self::write_segments`], to any pages.
    #[inline(never)]
    fn write_chunks(
        &self,
        may_sleep: bool,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        self.write_memory(may_sleep, at, len as usize, from)
    }

    /// Makes `len` bytes, from byte `at` on, read as zeros again.
    ///
    /// Pages that hold nothing else are taken out and freed, after an RCU grace period. A page
    /// knows which of its sectors of 512 bytes were written to and not wholly removed since, so it
    /// goes with the last of them, however many calls it takes.
    ///
    /// Only pages that there are cost time. Where `context` allows it, others may run in between.
    ///
    /// # Errors
    ///
    /// - [`EBUSY`] where interrupts are disabled.
    /// - [`EINVAL`] if the end of the range is beyond what can be addressed.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     block::{mq::{Context, QueueContext}, Sector, Sectors},
    ///     page_store::PageStore,
    ///     prelude::*,
    /// };
    ///
    /// fn discard<C: Context>(
    ///     store: &PageStore,
    ///     context: QueueContext<'_, C>,
    ///     at: Sector,
    ///     len: Sectors,
    /// ) -> Result {
    ///     store.remove(context, at.bytes(), len.bytes())
    /// }
    /// ```
    pub fn remove<C: Context>(&self, context: QueueContext<'_, C>, at: u64, len: u64) -> Result {
        interrupts_on()?;
        self.remove_range(context.may_sleep(), at, len)
    }
}

impl WriteCache {
    /// Copies `len` bytes, from byte `at` on, to the memory of a read request.
    ///
    /// # Errors
    ///
    /// As for [`PageStore::read`].
    #[inline]
    pub fn read<C: Context>(
        &self,
        _task: QueueContext<'_, C>,
        at: u64,
        to: &mut Segments<'_, FromDisk>,
        len: u32,
    ) -> Result {
        to.with_copy(|to| self.read_segments(at, to, len))
    }

    /// Copies `len` bytes from the memory of a write request, from byte `at` on, to the cache.
    ///
    /// Where that is full, some of its pages are settled first.
    ///
    /// # Errors
    ///
    /// As for [`PageStore::write`], and [`EINVAL`] if the range is not a multiple of
    /// [`Self::SMALLEST_BLOCK`]; nothing is copied then.
    #[inline]
    pub fn write<C: Context>(
        &self,
        context: QueueContext<'_, C>,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        from.with_copy(|from| self.write_segments(context.may_sleep(), false, at, from, len))
    }

    /// As [`Self::write`], to the store, so that the cache has nothing of the range after that.
    ///
    /// # Errors
    ///
    /// As for [`Self::write`]; but if out of memory, the data may be in the cache only.
    #[inline]
    pub fn write_through<C: Context>(
        &self,
        context: QueueContext<'_, C>,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        from.with_copy(|from| self.write_segments(context.may_sleep(), true, at, from, len))
    }

    /// Makes `len` bytes, from byte `at` on, read as zeros, here as in the store.
    ///
    /// # Errors
    ///
    /// As for [`PageStore::remove`], and [`EINVAL`] if the range is not a multiple of
    /// [`Self::SMALLEST_BLOCK`]; nothing is removed then.
    pub fn remove<C: Context>(&self, context: QueueContext<'_, C>, at: u64, len: u64) -> Result {
        interrupts_on()?;
        self.remove_range(context.may_sleep(), at, len)
    }

    /// Settles all that was written before.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if the store has no room for a page, which stays in the cache, as do those after
    /// it; [`EBUSY`] where interrupts are disabled.
    pub fn flush<C: Context>(&self, context: QueueContext<'_, C>) -> Result {
        interrupts_on()?;
        self.settle_all(context.may_sleep())
    }

    /// As [`Self::read`], for all of its callers.
    pub(super) fn read_segments(
        &self,
        at: u64,
        to: &mut Segments<'_, FromDisk>,
        len: u32,
    ) -> Result {
        interrupts_on()?;
        if len > to.remaining() {
            return Err(EINVAL);
        }
        self.read_memory(at, len as usize, to)
    }

    /// As [`Self::write`] or [`Self::write_through`], for a caller that is known to sleep or not.
    pub(super) fn write_segments(
        &self,
        may_sleep: bool,
        through: bool,
        at: u64,
        from: &mut Segments<'_, ToDisk>,
        len: u32,
    ) -> Result {
        interrupts_on()?;
        if len > from.remaining() {
            return Err(EINVAL);
        }
        self.write_memory(may_sleep, through, at, len as usize, from)
    }
}
