// SPDX-License-Identifier: GPL-2.0

//! A page of a store.
//!
//! Its bytes change only while the lock of its leaf is held. Readers need no lock: the
//! word `private` of its `struct page` counts the changes, so they notice that there was one while
//! they were copying. It has the sectors that were written to as well:
//!
//! ```text
//!      63                                          9 8             1   0
//!     +---------------------------------------------+---------------+------+
//!     | changes so far, modulo a power of two       | sectors       | busy |  64 bits, 4 KiB
//!     +---------------------------------------------+---------------+------+
//! ```
//!
//! C header: [`include/linux/seqlock.h`](srctree/include/linux/seqlock.h), which does the same.

use super::{
    part::Part,
    sectors::Sectors, //
};
use crate::{
    bindings,
    block::bio::{
        FromDisk,
        MappedBytes, //
        ToDisk,
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        barrier, //
    },
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// Set while bytes change.
const BUSY: usize = 1;
/// Where the sectors are.
const SECTORS_SHIFT: u32 = 1;
/// A change.
const ONE_CHANGE: usize = 1 << (SECTORS_SHIFT + Sectors::WIDTH);

/// A page that stays allocated for `'a`.
///
/// # Invariants
///
/// - `raw` is an order-0 page of a store: it is in no request, and no process maps it.
/// - A byte that is not zero is in one of its sectors.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    raw: NonNull<bindings::page>,
    _page: PhantomData<&'a bindings::page>,
}

impl<'a> Page<'a> {
    /// Names a page.
    ///
    /// # Safety
    ///
    /// `raw` must be an order-0 page of a store, and stay allocated for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw(raw: NonNull<bindings::page>) -> Self {
        // INVARIANT: The caller promises the first; whoever changes a page sees to the second.
        Self {
            raw,
            _page: PhantomData,
        }
    }

    /// C's page.
    #[cfg(CONFIG_RUST_KUNIT_TESTS)]
    pub(super) fn as_raw(&self) -> NonNull<bindings::page> {
        self.raw
    }

    #[inline]
    fn word(&self) -> &'a Atomic<usize> {
        // SAFETY: By the type invariants the page is allocated.
        let word = unsafe { bindings::page_store_word(self.raw.as_ptr()) };
        // SAFETY: As above; whatever has a page of a store uses the word as an atomic.
        unsafe { Atomic::from_ptr(word) }
    }

    /// The sectors that hold data.
    #[inline]
    pub(super) fn sectors(&self) -> Sectors {
        Sectors::from_bits(self.word().load(Relaxed) >> SECTORS_SHIFT)
    }

    /// Copies a part of the page, unless it changes meanwhile: then `false` is returned, and what
    /// `to` holds is of no use.
    #[inline]
    pub(super) fn try_read(&self, part: Part, to: &MappedBytes<'_, FromDisk>) -> bool {
        let before = self.word().load(Acquire);
        if before & BUSY != 0 {
            return false;
        }
        self.read(part, to);
        // The bytes were read before it is seen that they did not change.
        barrier::smp_mb(barrier::Read);
        self.word().load(Relaxed) == before
    }

    /// Copies a part of the page, as far as `to` reaches.
    #[inline]
    pub(super) fn read(&self, part: Part, to: &MappedBytes<'_, FromDisk>) {
        let len = part.len().min(to.len());
        // SAFETY: By the type invariants the page is allocated, and not part of the window. The
        // part lies within a page, `len` bytes of the window may be written.
        unsafe {
            bindings::memcpy_from_page(to.as_ptr(), self.raw.as_ptr(), part.offset(), len);
        }
    }

    /// Copies `from` over the start of a part of the page. To be called by [`Self::change`].
    #[inline]
    pub(super) fn write(&self, part: Part, from: &MappedBytes<'_, ToDisk>) {
        let len = part.len().min(from.len());
        // SAFETY: By the type invariants the page is allocated, and not part of the window. The
        // part lies within a page, `len` bytes of the window may be read.
        unsafe {
            bindings::memcpy_to_page(self.raw.as_ptr(), part.offset(), from.as_ptr(), len);
        }
    }

    /// Copies the sectors of another page. To be called by [`Self::change`].
    pub(super) fn copy(&self, from: Page<'_>, sectors: Sectors) {
        for (offset, len) in sectors.bytes() {
            let mut mapped = len;
            // SAFETY: By the type invariants the page is allocated, and order-0; the sectors lie
            // within a page. It is unmapped below, by the same task.
            let bytes = unsafe { bindings::bio_map(from.raw.as_ptr(), offset, &mut mapped) };
            // SAFETY: By the type invariants the page is allocated, and order-0. It is not the one
            // that is mapped, since only one of them is being changed. The sectors lie within a
            // page, so all of them are mapped.
            unsafe { bindings::memcpy_to_page(self.raw.as_ptr(), offset, bytes.cast(), len) };
            // SAFETY: `bio_map` has mapped it, and it is not used again.
            unsafe { bindings::bio_unmap(bytes) };
        }
    }

    /// Sets a part of the page to zero. To be called by [`Self::change`].
    pub(super) fn zero(&self, part: Part) {
        // SAFETY: By the type invariants the page is allocated; the part lies within a page.
        unsafe { bindings::memset_page(self.raw.as_ptr(), part.offset(), 0, part.len()) };
    }

    /// Sets sectors to zero. To be called by [`Self::change`].
    pub(super) fn clear(&self, sectors: Sectors) {
        for (offset, len) in sectors.bytes() {
            // SAFETY: By the type invariants the page is allocated; sectors lie within a page.
            unsafe { bindings::memset_page(self.raw.as_ptr(), offset, 0, len) };
        }
    }

    /// Runs `change`, after which the page holds the sectors that `sectors` makes of those before.
    ///
    /// The caller holds the lock that keeps others from doing the same.
    #[inline]
    pub(super) fn change(
        &self,
        sectors: impl FnOnce(Sectors) -> Sectors,
        change: impl FnOnce(&Self),
    ) {
        let word = self.word();
        let before = word.load(Relaxed);
        word.store(before | BUSY, Relaxed);
        // That it is busy is seen before any byte that changes.
        barrier::smp_mb(barrier::Write);
        change(self);
        let held = Sectors::from_bits(before >> SECTORS_SHIFT);
        let others = before & !(Sectors::ALL.bits() << SECTORS_SHIFT);
        let now = others | sectors(held).bits() << SECTORS_SHIFT;
        word.store(now.wrapping_add(ONE_CHANGE), Release);
    }
}

/// A page that is in no tree yet.
///
/// # Invariants
///
/// It owns `page`, all of whose bytes are initialised, unless it is in a [`Blank`].
pub(super) struct NewPage {
    page: Page<'static>,
}

impl NewPage {
    /// Allocates a page.
    #[inline]
    fn new(zeroed: bool, may_sleep: bool) -> Result<Self> {
        // SAFETY: Allocating has no preconditions.
        let raw = NonNull::new(unsafe { bindings::page_store_alloc(zeroed, may_sleep) });
        Ok(Self {
            // SAFETY: It was just allocated, and is freed when `self` is dropped.
            page: unsafe { Page::from_raw(raw.ok_or(ENOMEM)?) },
        })
    }

    /// Allocates a page of zeros.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, even after waiting for some if `may_sleep`.
    pub(super) fn zeroed(may_sleep: bool) -> Result<Self> {
        // INVARIANT: It was just allocated, and zeroed.
        Self::new(true, may_sleep)
    }

    /// Hands the page over.
    #[inline]
    pub(super) fn into_raw(self) -> *mut bindings::page {
        ManuallyDrop::new(self).page.raw.as_ptr()
    }
}

impl Drop for NewPage {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the page is ours.
        unsafe { bindings::page_store_free(self.page.raw.as_ptr()) };
    }
}

/// A page in the making, of which a part is yet to be written.
///
/// # Invariants
///
/// All bytes of the page beside `part` are zeros.
pub(super) struct Blank {
    page: NewPage,
    part: Part,
}

impl Blank {
    /// Allocates a page for the writing of `part`, without waiting; [`None`] if there is no memory.
    #[inline]
    pub(super) fn new(part: Part) -> Option<Self> {
        // INVARIANT: It was just allocated, and zeroed unless the part is all of it.
        let page = NewPage::new(!part.is_page(), false).ok()?;
        Some(Self { page, part })
    }

    /// Copies the start of `from` over the part.
    #[inline]
    pub(super) fn fill(self, from: &MappedBytes<'_, ToDisk>) -> NewPage {
        let Self { page: new, part } = self;
        if from.len() < part.len() {
            new.page.zero(part);
        }
        // INVARIANT: The part was zeroed or is overwritten as a whole.
        new.page
            .change(|_| part.touched(), |page| page.write(part, from));
        new
    }
}
