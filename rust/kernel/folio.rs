// SPDX-License-Identifier: GPL-2.0

//! Folios: contiguous pages of memory with a reference count.
//!
//! A [`Folio`] is memory for data that others may use at the same time: an RCU reader, a process
//! that has mapped it, a device. So no Rust reference to its bytes is created. They are copied in
//! and out by functions that tolerate that bytes change meanwhile: the worst effect is a mixture of
//! old and new bytes.
//!
//! A [`FolioBox`] is the owner of a folio, and an [`XArray`] or an [`RcuPtr`] can own it instead. C
//! may have other references: the memory is freed with the last one.
//!
//! C header: [`include/linux/mm_types.h`](srctree/include/linux/mm_types.h)
//!
//! [`RcuPtr`]: crate::sync::rcu_ptr::RcuPtr
//! [`XArray`]: crate::xarray::XArray

use crate::{
    alloc::Flags,
    bindings, gfp,
    page::PAGE_SIZE,
    prelude::*,
    sync::rcu_free::{
        Callbacks,
        RcuFree, //
    },
    types::{
        ForeignOwnable,
        Opaque, //
    },
};
use core::{
    marker::PhantomData,
    mem::{
        self,
        ManuallyDrop, //
    },
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};

/// Contiguous pages of memory with a reference count, and a word of type `P`: C's `struct folio`.
///
/// The word is C's `folio->private`. It is as private as it says: all who have the folio share it,
/// so it is of use if it can be changed through a shared reference, as an atomic or a [`SeqCount`].
///
/// Offsets and lengths are in bytes. A range that is not within the folio is [`EINVAL`], and
/// nothing is copied.
///
/// # Invariants
///
/// The folio was allocated by [`FolioBox::new`]. Its private word holds a valid `P`. It is on no
/// list, and in no page cache. So its fields `lru` and `index` belong to its one owner.
///
/// `page` is its first page, which C's `struct folio` begins with. The rest of that structure is
/// there for large folios only, so it is no part of what a reference to this is to.
///
/// # Examples
///
/// ```
/// use kernel::{folio::FolioBox, page::PAGE_SIZE, sync::atomic::{Atomic, Relaxed}};
///
/// let folio = FolioBox::new(1, GFP_KERNEL | __GFP_ZERO, Atomic::new(7usize))?;
/// assert_eq!(folio.size(), 2 * PAGE_SIZE);
/// folio.private().store(8, Relaxed);
///
/// let mut bytes = [1; 6];
/// folio.copy_from_slice(PAGE_SIZE - 2, b"rnull")?;
/// folio.copy_to_slice(PAGE_SIZE - 3, &mut bytes)?;
/// assert_eq!(&bytes, b"\0rnull");
/// assert_eq!(folio.copy_to_slice(2 * PAGE_SIZE - 5, &mut bytes), Err(EINVAL));
/// # Ok::<(), Error>(())
/// ```
///
/// [`SeqCount`]: crate::sync::seqcount::SeqCount
#[repr(transparent)]
pub struct Folio<P: Send + Sync + 'static = ()> {
    page: Opaque<bindings::page>,
    _private: PhantomData<P>,
}

// SAFETY: A folio belongs to no thread, and `P` is `Send`.
unsafe impl<P: Send + Sync + 'static> Send for Folio<P> {}

// SAFETY: Any thread may copy from and to a folio at any time, and `P` is `Sync`.
unsafe impl<P: Send + Sync + 'static> Sync for Folio<P> {}

impl<P: Send + Sync + 'static> Folio<P> {
    #[inline]
    fn as_raw(&self) -> *mut bindings::folio {
        self.page.get().cast()
    }

    /// Returns the private data.
    #[inline]
    pub fn private(&self) -> &P {
        // SAFETY: The folio is borrowed.
        let word = unsafe { bindings::folio_private(self.as_raw()) };
        // SAFETY: By the type invariants the word holds a `P`, which is only ever shared.
        unsafe { &*word.cast::<P>() }
    }

    /// Returns the order: the folio has `1 << order` pages.
    #[inline]
    pub fn order(&self) -> u32 {
        // SAFETY: The folio is borrowed.
        unsafe { bindings::folio_order(self.as_raw()) }
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn size(&self) -> usize {
        PAGE_SIZE << self.order()
    }

    /// Checks that the `len` bytes from `offset` on are within the folio.
    #[inline(always)]
    fn check(&self, offset: usize, len: usize) -> Result {
        // What is within the first page is within the folio, whatever its order is.
        if is_within(PAGE_SIZE, offset, len) {
            Ok(())
        } else {
            self.check_size(offset, len)
        }
    }

    /// As [`Self::check`]. A function of its own, since few ranges need it.
    #[inline(never)]
    fn check_size(&self, offset: usize, len: usize) -> Result {
        if is_within(self.size(), offset, len) {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Copies the bytes from `offset` on to `to`, until that is full.
    #[inline]
    pub fn copy_to_slice(&self, offset: usize, to: &mut [u8]) -> Result {
        // SAFETY: The bytes of `to` are borrowed.
        unsafe { self.copy_to_raw(offset, to.as_mut_ptr(), to.len()) }
    }

    /// Copies `from` over the bytes from `offset` on.
    #[inline]
    pub fn copy_from_slice(&self, offset: usize, from: &[u8]) -> Result {
        // SAFETY: The bytes of `from` are borrowed.
        unsafe { self.copy_from_raw(offset, from.as_ptr(), from.len()) }
    }

    /// Copies the `len` bytes from `offset` on to memory at `to`.
    ///
    /// # Safety
    ///
    /// C's `memcpy` must be allowed to write `len` bytes at `to`, which are not in this folio.
    #[inline(always)]
    pub(crate) unsafe fn copy_to_raw(&self, offset: usize, to: *mut u8, len: usize) -> Result {
        self.check(offset, len)?;
        // SAFETY: The folio is borrowed, and the range was checked. By the safety requirements.
        unsafe { bindings::folio_read(to.cast(), self.as_raw(), offset, len) };
        Ok(())
    }

    /// Copies `len` bytes of memory at `from` over the bytes from `offset` on.
    ///
    /// # Safety
    ///
    /// C's `memcpy` must be allowed to read `len` bytes at `from`, which are not in this folio.
    #[inline(always)]
    pub(crate) unsafe fn copy_from_raw(
        &self,
        offset: usize,
        from: *const u8,
        len: usize,
    ) -> Result {
        self.check(offset, len)?;
        // SAFETY: The folio is borrowed, and the range was checked. By the safety requirements.
        unsafe { bindings::folio_write(self.as_raw(), offset, from.cast(), len) };
        Ok(())
    }

    /// Copies `len` bytes of `from`, from `from_offset` on, over the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] also for two ranges of one folio.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::folio::FolioBox;
    ///
    /// let a = FolioBox::new(0, GFP_KERNEL, ())?;
    /// let b = FolioBox::new(0, GFP_KERNEL | __GFP_ZERO, ())?;
    /// a.copy_from_slice(0, b"folio")?;
    /// b.copy_from_folio(1, &a, 2, 3)?;
    ///
    /// let mut bytes = [1; 5];
    /// b.copy_to_slice(0, &mut bytes)?;
    /// assert_eq!(&bytes, b"\0lio\0");
    /// assert_eq!(b.copy_from_folio(0, &b, 100, 1), Err(EINVAL));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn copy_from_folio<Q: Send + Sync + 'static>(
        &self,
        offset: usize,
        from: &Folio<Q>,
        from_offset: usize,
        len: usize,
    ) -> Result {
        if ptr::eq(self.as_raw(), from.as_raw()) {
            return Err(EINVAL);
        }
        self.check(offset, len)?;
        from.check(from_offset, len)?;
        let (to, from) = (self.as_raw(), from.as_raw());
        // SAFETY: Both folios are borrowed, and the ranges were checked. They do not overlap, since
        // these are two folios.
        unsafe { bindings::folio_copy_range(to, offset, from, from_offset, len) };
        Ok(())
    }

    /// Sets `len` bytes from `offset` on to zero.
    #[inline]
    pub fn zero(&self, offset: usize, len: usize) -> Result {
        self.check(offset, len)?;
        // SAFETY: The folio is borrowed, and the range was checked.
        unsafe { bindings::folio_zero_bytes(self.as_raw(), offset, len) };
        Ok(())
    }
}

/// Returns whether the `len` bytes from `offset` on are among the first `size`.
#[inline(always)]
fn is_within(size: usize, offset: usize, len: usize) -> bool {
    offset <= size && len <= size - offset
}

/// The owner of a [`Folio`], whose reference is put when this is dropped.
///
/// A folio has one owner: a reference can be neither cloned nor taken from a borrowed folio. So the
/// list fields of a folio, which link it while it waits for RCU, are used once at a time.
///
/// # Invariants
///
/// `folio` points to a [`Folio`], of which this is the owner and has a reference.
pub struct FolioBox<P: Send + Sync + 'static = ()> {
    folio: NonNull<Folio<P>>,
}

// SAFETY: A folio belongs to no thread, and `P` is `Send`.
unsafe impl<P: Send + Sync + 'static> Send for FolioBox<P> {}

// SAFETY: A shared owner only lends the folio, which is `Sync`.
unsafe impl<P: Send + Sync + 'static> Sync for FolioBox<P> {}

impl<P: Send + Sync + 'static> FolioBox<P> {
    /// The private word has room for a `P`, which nothing will drop.
    const FITS: () = assert!(
        mem::size_of::<P>() <= mem::size_of::<usize>()
            && mem::align_of::<P>() <= mem::align_of::<usize>()
            && !mem::needs_drop::<P>(),
        "the private data must fit into a word, and have no destructor"
    );

    /// Allocates a folio of `1 << order` pages.
    ///
    /// Without `__GFP_ZERO` the bytes are those that the last user has left, which must not get to
    /// user space.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if the allocation fails, or if there are no folios of that order.
    #[inline]
    pub fn new(order: u32, flags: Flags, private: P) -> Result<Self> {
        let () = Self::FITS;
        // SAFETY: The function checks the order, and may be called with all flags that there are.
        let folio = unsafe { bindings::folio_alloc(gfp::bits(flags), order) };
        let folio = NonNull::new(folio).ok_or(ENOMEM)?;
        // SAFETY: The folio was just allocated.
        let word = unsafe { bindings::folio_private(folio.as_ptr()) };
        // SAFETY: As above, and nothing else uses it. The word has the size and the alignment for
        // it.
        unsafe { word.cast::<P>().write(private) };
        // INVARIANT: The reference was given to us. `Folio` has the representation of C's page,
        // which the folio begins with. The word was just written.
        Ok(Self {
            folio: folio.cast(),
        })
    }
}

impl<P: Send + Sync + 'static> Deref for FolioBox<P> {
    type Target = Folio<P>;

    #[inline]
    fn deref(&self) -> &Folio<P> {
        // SAFETY: By the type invariants there is a reference to the folio.
        unsafe { self.folio.as_ref() }
    }
}

impl<P: Send + Sync + 'static> Drop for FolioBox<P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the reference is ours.
        unsafe { bindings::folio_put(self.folio.as_ptr().cast()) };
    }
}

// SAFETY: The pointer is that of a folio, so it is aligned and not null.
unsafe impl<P: Send + Sync + 'static> ForeignOwnable for FolioBox<P> {
    const FOREIGN_ALIGN: usize = mem::align_of::<bindings::page>();

    type Borrowed<'a> = &'a Folio<P>;
    type BorrowedMut<'a> = &'a Folio<P>;

    #[inline]
    fn into_foreign(self) -> *mut c_void {
        ManuallyDrop::new(self).folio.as_ptr().cast()
    }

    #[inline]
    unsafe fn from_foreign(ptr: *mut c_void) -> Self {
        // INVARIANT: By the safety requirements the pointer is from `into_foreign`, which has given
        // the reference away.
        Self {
            // SAFETY: As above, so it is not null.
            folio: unsafe { NonNull::new_unchecked(ptr.cast()) },
        }
    }

    #[inline]
    unsafe fn borrow<'a>(ptr: *mut c_void) -> &'a Folio<P> {
        // SAFETY: By the safety requirements the folio is not put during `'a`.
        unsafe { &*ptr.cast() }
    }

    #[inline]
    unsafe fn borrow_mut<'a>(ptr: *mut c_void) -> &'a Folio<P> {
        // SAFETY: By the safety requirements, which include those of `borrow`.
        unsafe { Self::borrow(ptr) }
    }
}

/// Folios that were removed from a container, to be put together after one grace period.
///
/// They are linked by `folio->index`, so a batch takes no memory, whatever its length.
///
/// # Invariants
///
/// `first` is null, or a folio with a reference that belongs to the batch. So is each folio that
/// one of them is linked to.
pub struct FolioBatch {
    first: *mut bindings::folio,
}

// SAFETY: Folios belong to no thread.
unsafe impl Send for FolioBatch {}

// SAFETY: Nothing is done through a shared reference.
unsafe impl Sync for FolioBatch {}

impl Default for FolioBatch {
    #[inline]
    fn default() -> Self {
        // INVARIANT: There is no folio.
        Self {
            first: ptr::null_mut(),
        }
    }
}

impl FolioBatch {
    /// # Safety
    ///
    /// `folio` must be that of a [`Folio`] that the caller owned, and gives away. The kernel crate
    /// must stay in memory until the callback that dropping the batch queues has run.
    #[inline]
    unsafe fn push(&mut self, folio: NonNull<bindings::folio>) {
        // SAFETY: By the safety requirements the folio exists.
        let link = unsafe { bindings::folio_link(folio.as_ptr()) };
        // SAFETY: By the invariants of `Folio` the field belongs to its owner.
        unsafe { *link = self.first };
        // INVARIANT: The reference was given to us.
        self.first = folio.as_ptr();
    }
}

impl Drop for FolioBatch {
    #[inline]
    fn drop(&mut self) {
        if let Some(first) = NonNull::new(self.first) {
            put_after_grace_period(first);
        }
    }
}

/// Puts the folios of a batch after a grace period; `first` is its first folio.
// Not inlined, so that the callback is that of the kernel crate, which `FolioBatch::push` requires
// to stay in memory.
#[inline(never)]
fn put_after_grace_period(first: NonNull<bindings::folio>) {
    // SAFETY: By the invariants of `FolioBatch`, which has given it away, it is a folio.
    let head = unsafe { bindings::folio_rcu_head(first.as_ptr()) };
    // SAFETY: By the invariants of `Folio` the field that the head overlaps belongs to its owner.
    // By the safety requirements of `FolioBatch::push` the callback stays in memory.
    unsafe { bindings::call_rcu(head, Some(put_batch)) };
    Callbacks::queued();
}

/// Puts the folios of a batch.
///
/// # Safety
///
/// Must be called by RCU only, with the head of the first folio of a batch.
unsafe extern "C" fn put_batch(head: *mut bindings::callback_head) {
    // SAFETY: The references belong to the batch, which has given them away. A grace period has
    // passed, so no reader has the folios but by references of its own.
    unsafe { bindings::folio_put_batch(head) };
}

// SAFETY: A folio is freed with its last reference, hence not before the batch has put that of the
// container. The private data has no destructor.
unsafe impl<P: Send + Sync + 'static> RcuFree for FolioBox<P> {
    type Batch = FolioBatch;

    const HAS_CALLBACK: bool = true;

    #[inline]
    unsafe fn free_later(ptr: NonNull<c_void>, batch: &mut FolioBatch) {
        // SAFETY: By the safety requirements the pointer is that of a folio, with the reference of
        // the container, and the kernel crate stays in memory.
        unsafe { batch.push(ptr.cast()) };
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
pub(crate) mod tests;
