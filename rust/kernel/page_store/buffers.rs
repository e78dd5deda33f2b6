// SPDX-License-Identifier: GPL-2.0

//! The use of a page store with plain buffers.

use super::{
    context::in_task,
    copy::Unfilled,
    store::PageStore, //
};
use crate::prelude::*;

impl PageStore {
    /// Copies the bytes from byte `at` of the store on into a buffer, until that is full.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`] if the end of the range is beyond what can be addressed.
    /// - [`EBUSY`] in an interrupt, or where interrupts are disabled.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// let mut bytes = [1, 2, 3];
    /// store.read_bytes(12345, &mut bytes)?;
    /// assert_eq!(bytes, [0, 0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn read_bytes(&self, at: u64, to: &mut [u8]) -> Result {
        in_task()?;
        self.read_memory(at, to.len(), &mut Unfilled(to))
    }

    /// Copies a buffer into the store, from byte `at` on. This sleeps where the caller may.
    ///
    /// # Errors
    ///
    /// As for [`Self::write`], and [`EBUSY`] in an interrupt.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// store.write_bytes(0, b"a boot sector")?;
    /// store.write_bytes(2, b"root")?;
    ///
    /// let mut bytes = [0; 13];
    /// store.read_bytes(0, &mut bytes)?;
    /// assert_eq!(&bytes, b"a root sector");
    /// assert_eq!(store.write_bytes(u64::MAX, b"no"), Err(EINVAL));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn write_bytes(&self, at: u64, mut from: &[u8]) -> Result {
        in_task()?;
        self.write_memory(true, at, from.len(), &mut from)
    }

    /// Makes `len` bytes, from byte `at` on, read as zeros again. This sleeps where the caller may.
    ///
    /// Pages go as with [`Self::remove`].
    ///
    /// # Errors
    ///
    /// As for [`Self::remove`], and [`EBUSY`] in an interrupt.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::page_store::PageStore;
    ///
    /// let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
    /// store.write_bytes(0, b"abcdef")?;
    /// store.remove_bytes(2, 2)?;
    ///
    /// let mut bytes = [0; 6];
    /// store.read_bytes(0, &mut bytes)?;
    /// assert_eq!(&bytes, b"ab\0\0ef");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn remove_bytes(&self, at: u64, len: u64) -> Result {
        in_task()?;
        self.remove_range(true, at, len)
    }
}
