// SPDX-License-Identifier: GPL-2.0

//! Pools of small blocks of coherent DMA memory.
//!
//! C's `dma_pool` links its free blocks through the blocks themselves, where the device can write.
//! A device that does so makes the CPU follow a pointer of its choice. Here, which blocks are free
//! is recorded in memory that the device does not see, and each block knows its own address.

use crate::{
    device::{
        Bound,
        Device, //
    },
    dma::{
        Coherent,
        DmaAddress, //
    },
    late_drop::MAX_SIZE,
    module_pin::ModulePin,
    new_spinlock_irq,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq,
        UniqueArc, //
    },
    transmute::{
        AsBytes,
        FromBytes, //
    },
    until_unbind::{
        Release,
        UntilUnbind, //
    },
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
};

/// What a block consists of: values for which any bytes will do.
pub trait Element: AsBytes + FromBytes + Copy + Send + Sync + 'static {}

impl<T: AsBytes + FromBytes + Copy + Send + Sync + 'static> Element for T {}

/// A pool of blocks of `N` values of type `T` each, which a device can access.
///
/// The size of a block is a power of two, and at most that of a page. The address of a block is a
/// multiple of its size, so it does not cross a page.
///
/// The memory is freed when the pool is dropped, or when the driver is unbound. If a block still
/// exists then, all of it is leaked. Where the caller that drops the pool certainly cannot sleep,
/// the memory remains until the driver is unbound.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::{Bound, Device},
///     dma::pool::DmaPool,
/// };
///
/// fn list_of_pages(dev: &Device<Bound>, pages: &[u64]) -> Result {
///     let pool = DmaPool::<u64, 512>::new(dev, 4)?;
///     let mut block = pool.take().ok_or(ENOMEM)?;
///     for (index, page) in pages.iter().enumerate() {
///         block.write(index, *page)?;
///     }
///     dev_info!(dev, "the list is at {:#x}\n", block.address());
///     Ok(())
/// }
/// ```
pub struct DmaPool<T: Element, const N: usize> {
    pool: UntilUnbind<Pool>,
    _elements: PhantomData<[T; N]>,
}

/// The memory of a pool. The code that C calls to free it depends on no type of a driver.
#[pin_data]
struct Pool {
    #[pin]
    blocks: SpinLockIrq<Blocks>,
}

/// # Invariants
///
/// `free` points to the place of each free block once, and has room for all blocks. `places` is not
/// reallocated. The memory of a block that is not free is never freed, nor is its place.
struct Blocks {
    pages: KVec<Coherent<[u8]>>,
    places: KVec<Place>,
    free: KVec<NonNull<Place>>,
    is_closed: bool,
    /// The pool itself, until it is closed, so that blocks need not count references to it. If a
    /// block exists then, the pool is leaked.
    pool: Option<Arc<Pool>>,
}

/// Where a block is.
///
/// # Invariants
///
/// `pool` has this place, and is valid while the block is not free. `next` is [`None`] if the block
/// is free; else it belongs to the owner of the block.
struct Place {
    memory: NonNull<u8>,
    address: DmaAddress,
    pool: NonNull<Pool>,
    /// The place of another block with the same owner.
    next: Option<NonNull<Place>>,
}

/// The most blocks of a pool: what is recorded of them, and of their pages, is allocated at once.
const MAX_BLOCKS: usize = {
    let (page, place) = (size_of::<Coherent<[u8]>>(), size_of::<Place>());
    MAX_SIZE / if page > place { page } else { place }
};

// SAFETY: A place can be used by any thread.
unsafe impl Send for Blocks {}

impl Place {
    /// Frees a block.
    ///
    /// # Safety
    ///
    /// It is not free, and not used after this. Its `next` is [`None`].
    #[inline(never)]
    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: The block is not free, so its place exists.
        let place = unsafe { this.as_ref() };
        // SAFETY: As above, so the pool is valid.
        let pool = unsafe { place.pool.as_ref() };
        // INVARIANT: The block was not free, so there is room for it.
        let _ = pool.blocks.lock().free.push_within_capacity(this);
    }
}

impl Pool {
    /// Makes a pool of at least so many blocks of `size` bytes, which divides that of a page.
    fn new(dev: &Device<Bound>, blocks: usize, size: usize) -> Result<UntilUnbind<Self>> {
        let pages = blocks.max(1).div_ceil(PAGE_SIZE / size);
        let total = pages.checked_mul(PAGE_SIZE / size).ok_or(EINVAL)?;
        // There are at least as many blocks as pages.
        if total > MAX_BLOCKS {
            return Err(EINVAL);
        }
        let mut memory = UniqueArc::<Self>::new_uninit(GFP_KERNEL)?;
        let at = NonNull::from(&mut *memory).cast::<Self>();
        let mut this = Blocks {
            pages: KVec::with_capacity(pages, GFP_KERNEL)?,
            places: KVec::with_capacity(total, GFP_KERNEL)?,
            free: KVec::with_capacity(total, GFP_KERNEL)?,
            is_closed: false,
            pool: None,
        };
        for _ in 0..pages {
            let page: Coherent<[u8]> = Coherent::zeroed_slice(dev, PAGE_SIZE, GFP_KERNEL)?;
            let start = NonNull::new(page.as_mut_ptr().cast::<u8>()).ok_or(ENOMEM)?;
            for offset in (0..PAGE_SIZE).step_by(size) {
                // INVARIANT: This is the pool that is made here, of which the block is.
                this.places.push_within_capacity(Place {
                    // SAFETY: The offset is one in the page.
                    memory: unsafe { start.add(offset) },
                    address: page.dma_address() + offset as DmaAddress,
                    pool: at,
                    next: None,
                })?;
            }
            this.pages.push_within_capacity(page)?;
        }
        for place in this.places.iter_mut() {
            // INVARIANT: The blocks of new pages are free, and all places are there.
            this.free.push_within_capacity(NonNull::from(place))?;
        }
        let pin = ModulePin::of_this_code()?;
        let init = pin_init!(Self {
            blocks <- new_spinlock_irq!(this),
        });
        let pool: Arc<Self> = memory.pin_init_with(init)?.into();
        pool.blocks.lock().pool = Some(pool.clone());
        UntilUnbind::new(dev, pool, pin)
    }
}

impl<T: Element, const N: usize> DmaPool<T, N> {
    /// The size of a block, whose alignment in a page is as large.
    const SIZE: usize = {
        let size = size_of::<T>() * N;
        assert!(size.is_power_of_two() && size <= PAGE_SIZE && size % align_of::<T>() == 0);
        size
    };

    /// Makes a pool of at least so many blocks. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the blocks are more than some ten thousand; `ENOMEM` if out of memory.
    ///
    /// The memory is allocated with `GFP_KERNEL`, for which the kernel may wait for I/O. Where I/O
    /// may wait for the caller, such as while a disk is being reset, this needs a NOIO scope.
    pub fn new(dev: &Device<Bound>, blocks: usize) -> Result<Self> {
        Ok(Self {
            pool: Pool::new(dev, blocks, Self::SIZE)?,
            _elements: PhantomData,
        })
    }

    /// Takes a block; [`None`] if there is none, or the driver was unbound. Never sleeps.
    ///
    /// It contains what was written into it last, at first zeros.
    #[inline]
    pub fn take(&self) -> Option<DmaBlock<T>> {
        let pool = self.pool.resource();
        let mut blocks = pool.blocks.lock();
        if blocks.is_closed {
            return None;
        }
        // INVARIANT: The block is not free any more, and has `N` values.
        blocks.free.pop().map(|place| DmaBlock {
            memory: DmaMemory { place },
            len: N,
            _elements: PhantomData,
        })
    }
}

impl Release for Pool {
    fn release(&self) {
        let mut blocks = self.blocks.lock();
        blocks.is_closed = true;
        let leaked = (core::mem::take(&mut blocks.pages), blocks.pool.take());
        let is_complete = blocks.free.len() == blocks.places.len();
        drop(blocks);
        if is_complete {
            // Memory is not freed with interrupts disabled.
            drop(leaked);
        } else {
            pr_warn!("a pool of DMA memory is leaked, since blocks are in use\n");
            core::mem::forget(leaked);
        }
    }
}

/// The memory of one or more blocks, which are free again when this is dropped.
///
/// It has the size of a pointer, so it can be kept for each command that a device has.
///
/// # Examples
///
/// ```
/// use kernel::dma::pool::{DmaMemory, DmaPool};
///
/// /// Makes a list of two blocks, which ends with the address of the second.
/// fn chain(pool: &DmaPool<u64, 512>) -> Result<DmaMemory> {
///     let mut first = pool.take().ok_or(ENOMEM)?;
///     let second = pool.take().ok_or(ENOMEM)?;
///     first.write(511, second.address())?;
///     let mut memory = first.into_memory();
///     memory.append(second.into_memory());
///     Ok(memory)
/// }
/// ```
///
/// # Invariants
///
/// `place`, and those that follow it by `next`, are of blocks that are not free. Nothing else has
/// the blocks.
pub struct DmaMemory {
    place: NonNull<Place>,
}

// SAFETY: A block can be used by any thread, and only what has a `&mut DmaMemory` changes a place.
unsafe impl Send for DmaMemory {}

// SAFETY: As above.
unsafe impl Sync for DmaMemory {}

impl DmaMemory {
    #[inline]
    fn place(&self) -> &Place {
        // SAFETY: By the type invariant, the block is not free, so its place exists.
        unsafe { self.place.as_ref() }
    }

    /// Takes over the memory of other blocks, which may be of another pool.
    #[inline]
    pub fn append(&mut self, other: DmaMemory) {
        let mut last = self.place;
        // SAFETY: By the type invariant, the block is not free, and nothing else has it.
        while let Some(next) = unsafe { (*last.as_ptr()).next } {
            last = next;
        }
        let other = ManuallyDrop::new(other);
        // INVARIANT: By the type invariant of `other`, which does not have the blocks any more.
        //
        // SAFETY: As above.
        unsafe { (*last.as_ptr()).next = Some(other.place) };
    }
}

impl Drop for DmaMemory {
    #[inline]
    fn drop(&mut self) {
        let mut rest = Some(self.place);
        while let Some(place) = rest {
            // SAFETY: By the type invariant, the block is not free, and nothing else has it.
            rest = unsafe { (*place.as_ptr()).next.take() };
            // SAFETY: As above, and nothing has the block any more.
            unsafe { Place::free(place) };
        }
    }
}

/// A block of a [`DmaPool`], which is free again when this is dropped.
///
/// # Invariants
///
/// The memory is that of `len` values.
pub struct DmaBlock<T: Element> {
    memory: DmaMemory,
    len: usize,
    _elements: PhantomData<[T]>,
}

impl<T: Element> DmaBlock<T> {
    /// Returns the address by which the device knows the block.
    #[inline]
    pub fn address(&self) -> DmaAddress {
        self.memory.place().address
    }

    /// Gives up the access to the values. They remain until the memory is dropped.
    #[inline]
    pub fn into_memory(self) -> DmaMemory {
        self.memory
    }

    /// Begins to write all values in order.
    #[inline]
    pub fn into_writer(self) -> DmaWriter<T> {
        let start = self.value(0);
        // INVARIANT: By the type invariant, there are `len` values from `start` on.
        DmaWriter {
            next: start,
            end: start.wrapping_add(self.len),
            memory: Some(self.memory),
        }
    }

    /// Writes a value, which the device may overwrite.
    ///
    /// # Errors
    ///
    /// `EINVAL` unless `index` is less than the number of values.
    #[inline]
    pub fn write(&mut self, index: usize, value: T) -> Result {
        if index >= self.len {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant, the memory is valid for `len` values. The device may
        // access it at the same time, so the write is volatile.
        unsafe { self.value(index).write_volatile(value) };
        Ok(())
    }

    /// Writes values from `index` on, in order.
    ///
    /// # Errors
    ///
    /// `EINVAL` if they are too many; then the block is full.
    #[inline]
    pub fn write_all(&mut self, index: usize, values: impl IntoIterator<Item = T>) -> Result {
        let mut values = values.into_iter();
        for at in index..self.len {
            let Some(value) = values.next() else {
                return Ok(());
            };
            // SAFETY: As for `write`, since `at` is less than their number.
            unsafe { self.value(at).write_volatile(value) };
        }
        values.next().map_or(Ok(()), |_| Err(EINVAL))
    }

    /// Reads a value, which the device may have written, or be writing.
    ///
    /// # Errors
    ///
    /// `EINVAL` unless `index` is less than the number of values.
    #[inline]
    pub fn read(&self, index: usize) -> Result<T> {
        if index >= self.len {
            return Err(EINVAL);
        }
        // SAFETY: As for `write`; any bytes are a value.
        Ok(unsafe { self.value(index).read_volatile() })
    }

    /// Returns where a value is.
    fn value(&self, index: usize) -> *mut T {
        self.memory
            .place()
            .memory
            .as_ptr()
            .cast::<T>()
            .wrapping_add(index)
    }
}

// SAFETY: A shared reference only allows to read values that are `Sync`.
unsafe impl<T: Element> Sync for DmaBlock<T> {}

/// Writes the values of a block of a [`DmaPool`] in order, which takes few instructions for each.
/// By default there is no block.
///
/// # Examples
///
/// ```
/// use kernel::dma::pool::{DmaMemory, DmaPool};
///
/// /// Makes a list of as many pages as fit.
/// fn list(pool: &DmaPool<u64, 512>, pages: impl Iterator<Item = u64>) -> Option<DmaMemory> {
///     let mut writer = pool.take()?.into_writer();
///     for page in pages {
///         if !writer.push(page) {
///             break;
///         }
///     }
///     writer.into_memory()
/// }
/// ```
///
/// # Invariants
///
/// If there is a block, its memory is `memory`, and `next` and `end` point into it, or behind its
/// last value, `end` not before `next`. Else they are equal.
pub struct DmaWriter<T: Element> {
    memory: Option<DmaMemory>,
    next: *mut T,
    end: *mut T,
}

impl<T: Element> Default for DmaWriter<T> {
    fn default() -> Self {
        // INVARIANT: The pointers are equal.
        Self {
            memory: None,
            next: ptr::null_mut(),
            end: ptr::null_mut(),
        }
    }
}

impl<T: Element> DmaWriter<T> {
    /// Writes the next value, which the device may overwrite; false if there is no room.
    #[inline]
    pub fn push(&mut self, value: T) -> bool {
        if self.next == self.end {
            return false;
        }
        // SAFETY: By the type invariant, this is a value of a block that nothing else has. The
        // device may access it at the same time, so the write is volatile.
        unsafe { self.next.write_volatile(value) };
        // INVARIANT: As there was room, this is not behind the end.
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Replaces the value that was written last by another, and returns what the device has left of
    /// it; [`None`] if none was written.
    pub fn replace_last(&mut self, value: T) -> Option<T> {
        let start = self.memory.as_ref()?.place().memory.as_ptr().cast::<T>();
        if self.next == start {
            return None;
        }
        let last = self.next.wrapping_sub(1);
        // SAFETY: By the type invariant, as `next` is not the start, this is a value of a block
        // that nothing else has. Any bytes are a value.
        let old = unsafe { last.read_volatile() };
        // SAFETY: As above, and as for `push`.
        unsafe { last.write_volatile(value) };
        Some(old)
    }

    /// Leaves no room.
    pub fn close(&mut self) {
        // INVARIANT: The pointers are equal.
        self.end = self.next;
    }

    /// Gives up the access to the values. They remain until the memory is dropped.
    #[inline]
    pub fn into_memory(self) -> Option<DmaMemory> {
        self.memory
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
