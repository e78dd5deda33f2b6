// SPDX-License-Identifier: GPL-2.0

//! A leaf of a tree: some neighbouring pages with the lock for changing them.

use super::{
    chain::Chain,
    page::{
        NewPage,
        Page, //
    },
    range::{
        Run,
        LEAF_PAGES, //
    },
};
use crate::{
    bindings, c_str,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        LockClassKey,
        SpinLock, //
    },
    types::Opaque,
};
use core::{
    array,
    cell::UnsafeCell,
    mem,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        compiler_fence,
        Ordering::SeqCst, //
    },
};

/// What changes under the lock of a leaf.
pub(super) struct Inside {
    /// Whether the leaf was taken out of its tree.
    pub(super) gone: bool,
    /// Whether RCU has the leaf, for [`Leaf::settle`].
    reclaiming: bool,
    /// Pages that were taken out since RCU got it.
    removed: Chain,
}

/// A row of pages, some of which may be missing.
///
/// # Invariants
///
/// - What is in `pages` is null or an order-0 page that belongs to the leaf alone, until it is
///   taken out. It is changed under the lock.
/// - `head` and `waiting` belong to whoever has set `reclaiming`, then to RCU, which does not give
///   them back before it is unset.
/// - Whoever has a page of `waiting` found it before RCU got the leaf.
#[pin_data]
#[repr(C, align(64))]
pub(super) struct Leaf {
    #[pin]
    pub(super) inside: SpinLock<Inside>,
    #[pin]
    head: Opaque<bindings::callback_head>,
    /// Pages that were taken out, and that RCU waits for.
    waiting: UnsafeCell<Chain>,
    /// Whether somebody holds the lock, where the lock itself does not know.
    held: Atomic<bool>,
    /// The number of pages. It is changed under the lock.
    count: Atomic<usize>,
    /// On cache lines that nobody writes to while no page comes or goes.
    pages: Row,
}

#[repr(align(64))]
struct Row([Atomic<*mut bindings::page>; LEAF_PAGES]);

impl Leaf {
    /// Allocates a leaf without pages.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, even after waiting for some if `may_sleep`.
    pub(super) fn new(class: Pin<&'static LockClassKey>, may_sleep: bool) -> Result<NonNull<Self>> {
        // INVARIANT: There are no pages.
        let init = pin_init!(Self {
            inside <- SpinLock::new(
                Inside {
                    gone: false,
                    reclaiming: false,
                    removed: Chain::new(),
                },
                c_str!("PageStore"),
                class,
            ),
            head <- Opaque::uninit(),
            waiting: UnsafeCell::new(Chain::new()),
            held: Atomic::new(false),
            count: Atomic::new(0),
            pages: Row(array::from_fn(|_| Atomic::new(ptr::null_mut()))),
        });
        // SAFETY: Allocating has no preconditions.
        let new = unsafe { bindings::page_store_alloc_leaf(mem::size_of::<Self>(), may_sleep) };
        let new = NonNull::new(new.cast::<Self>()).ok_or(ENOMEM)?;
        // SAFETY: There is as much memory, aligned to at least the largest power of two that
        // divides the size; it stays where it is.
        unsafe { pin_init::raw_init(new.as_ptr(), init) };
        Ok(new)
    }

    /// To be told by the holder of the lock, from taking it until giving it back.
    ///
    /// On a single processor a spinlock is nothing, and to try it always succeeds, also for the
    /// callback of RCU that interrupts its holder.
    #[inline(always)]
    pub(super) fn set_held(&self, held: bool) {
        if !cfg!(CONFIG_SMP) {
            // What the holder does stays between the two.
            compiler_fence(SeqCst);
            self.held.store(held, Relaxed);
            compiler_fence(SeqCst);
        }
    }

    /// The page with this number, which belongs into this leaf; [`None`] if there is none.
    ///
    /// # Safety
    ///
    /// During `'a`, the caller is in an RCU read section, or holds the lock and takes out no page.
    #[inline]
    pub(super) unsafe fn page<'a>(&self, page: usize) -> Option<Page<'a>> {
        let raw = NonNull::new(self.pages.0[page % LEAF_PAGES].load(Acquire))?;
        // SAFETY: By the type invariants it is a page, and not freed before the read section ends.
        Some(unsafe { Page::from_raw(raw) })
    }

    /// The pages of a run, which belong into this leaf; [`None`] for each that there is not.
    ///
    /// # Safety
    ///
    /// As for [`Self::page`], as long as `self` is borrowed.
    #[inline]
    pub(super) unsafe fn pages(&self, run: Run) -> impl Iterator<Item = Option<Page<'_>>> {
        let row = &self.pages.0[run.page() % LEAF_PAGES..][..run.count()];
        row.iter().map(|slot| {
            let raw = NonNull::new(slot.load(Acquire))?;
            // SAFETY: By the type invariants it is a page, and not freed before the read section
            // ends.
            Some(unsafe { Page::from_raw(raw) })
        })
    }

    /// How many pages there are now.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Makes `new` the page with this number, of which there was none.
    #[inline]
    pub(super) fn insert(&self, _lock: &mut Inside, page: usize, new: NewPage) {
        self.count.store(self.count() + 1, Relaxed);
        // INVARIANT: The page belongs to the leaf now. Its bytes are seen before itself.
        self.pages.0[page % LEAF_PAGES].store(new.into_raw(), Release);
    }

    /// Takes out the page with this number, if there is one; it is freed by [`Self::reclaim`].
    /// Whoever has found it may go on to use it until the end of its RCU read section.
    #[inline]
    pub(super) fn take(&self, inside: &mut Inside, page: usize) -> bool {
        let slot = &self.pages.0[page % LEAF_PAGES];
        let Some(raw) = NonNull::new(slot.load(Relaxed)) else {
            return false;
        };
        self.count.store(self.count() - 1, Relaxed);
        slot.store(ptr::null_mut(), Relaxed);
        // SAFETY: By the type invariants the page belonged to the leaf, which does not have it now.
        unsafe { inside.removed.push(raw) };
        true
    }

    /// Frees the pages that were taken out, once nobody looks at them any more, and the leaf if it
    /// is gone.
    ///
    /// All that are taken out while RCU waits have to wait for the next time, together.
    ///
    /// # Safety
    ///
    /// Whoever frees the leaf must wait as [`Self::free`] says.
    #[inline]
    pub(super) unsafe fn reclaim(&self, inside: &mut Inside) {
        if !inside.reclaiming && (inside.gone || !inside.removed.is_empty()) {
            inside.reclaiming = true;
            // SAFETY: It was just set, so they are ours, and without it nothing is waiting.
            unsafe { self.give_to_rcu(inside) };
        }
    }

    /// Has [`Self::settle`] called after a grace period.
    ///
    /// # Safety
    ///
    /// The caller owns `head` and `waiting`, which is empty, and gives them up.
    unsafe fn give_to_rcu(&self, inside: &mut Inside) {
        // INVARIANT: None of these can be found any more.
        // SAFETY: By the safety requirement.
        unsafe {
            *self.waiting.get() = inside.removed.take();
            bindings::call_rcu(self.head.get(), Some(Self::settle));
        }
    }

    /// Frees what RCU has waited for.
    ///
    /// # Safety
    ///
    /// To be called by RCU alone. `head` must be that of a leaf.
    unsafe extern "C" fn settle(head: *mut bindings::callback_head) {
        // SAFETY: By the safety requirement. Nobody else frees the leaf while RCU has it.
        let leaf = unsafe { &*crate::container_of!(Opaque::cast_from(head), Self, head) };
        // SAFETY: By the type invariants `waiting` is ours. There was a grace period, so whoever
        // has found one of the pages is done with it.
        unsafe { (*leaf.waiting.get()).take().free() };
        let interrupts = !cfg!(CONFIG_SMP) && leaf.held.load(Relaxed);
        let inside = (!interrupts).then(|| leaf.inside.try_lock()).flatten();
        let Some(mut inside) = inside else {
            // This may have interrupted the one who holds the lock.
            // SAFETY: By the type invariants `head` is ours.
            unsafe { bindings::call_rcu(head, Some(Self::settle)) };
            return;
        };
        if !inside.removed.is_empty() {
            // SAFETY: By the type invariants both are ours, and `waiting` is empty now.
            unsafe { leaf.give_to_rcu(&mut inside) };
        } else if inside.gone {
            drop(inside);
            // As C's `kvfree_rcu()` checks: in large allocations, C rounds the address of `head`
            // down to a page.
            const_assert!(mem::offset_of!(Leaf, head) < 4096);
            let memory = ptr::from_ref(leaf).cast_mut().cast();
            // SAFETY: The leaf is out of its tree, has no pages, and `head` is ours. So it is only
            // used by those who have found it in an RCU read section. C's `kvfree_rcu_head` is no
            // larger than `head`, from whose address C finds the start of the leaf.
            unsafe { bindings::kvfree_call_rcu(head.cast(), memory) };
        } else {
            // INVARIANT: RCU gives them back.
            inside.reclaiming = false;
        }
    }

    /// Frees a leaf with its pages.
    ///
    /// # Safety
    ///
    /// Nobody must use it, or its pages, any more. If there ever was a call of [`Self::reclaim`],
    /// the caller must have waited for all callbacks of RCU, then for those that they made.
    pub(super) unsafe fn free(leaf: NonNull<Self>) {
        // SAFETY: The leaf is allocated, and ours alone.
        let this = unsafe { leaf.as_ref() };
        for slot in &this.pages.0 {
            if let Some(page) = NonNull::new(slot.load(Relaxed)) {
                // SAFETY: By the type invariants the page belongs to the leaf.
                unsafe { bindings::page_store_free(page.as_ptr()) };
            }
        }
        let removed = this.inside.lock().removed.take();
        // SAFETY: Nobody uses them.
        unsafe { removed.free() };
        // SAFETY: It was allocated by `new`, and there is nothing in it to be dropped.
        unsafe { bindings::kfree(leaf.as_ptr().cast()) };
    }
}
