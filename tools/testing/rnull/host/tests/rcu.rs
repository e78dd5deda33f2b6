// SPDX-License-Identifier: GPL-2.0

//! Checks in all interleavings with up to three preemptions that readers never use a value that was
//! freed, while values are removed, inserted, and dropped with their container. Each is freed once.

#[path = "model/atomic.rs"]
mod atomic;
#[path = "../../../../../rust/kernel/sync/rcu_free.rs"]
mod rcu_free;
#[path = "../../../../../rust/kernel/sync/rcu_ptr.rs"]
mod rcu_ptr;

use loom::{cell::UnsafeCell, sync::Arc, thread};
use prelude::*;
use rcu_free::{RcuBatch, RcuFree};
use rcu_ptr::RcuPtr;
use std::{
    ptr::NonNull,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use types::ForeignOwnable;

mod prelude {
    pub use std::ffi::c_void;

    #[derive(Debug)]
    pub struct Error;
    pub type Result<T = ()> = core::result::Result<T, Error>;
}

mod types {
    use std::ffi::c_void;

    /// What the files use of the trait of the kernel crate.
    #[allow(clippy::missing_safety_doc)]
    pub unsafe trait ForeignOwnable: Sized {
        type Borrowed<'a>;

        fn into_foreign(self) -> *mut c_void;
        unsafe fn from_foreign(ptr: *mut c_void) -> Self;
        unsafe fn borrow<'a>(ptr: *mut c_void) -> Self::Borrowed<'a>;

        unsafe fn try_from_foreign(ptr: *mut c_void) -> Option<Self> {
            (!ptr.is_null()).then(|| unsafe { Self::from_foreign(ptr) })
        }
    }
}

/// RCU whose grace periods are as short as they may be: a callback runs as soon as all readers are
/// gone that were there when it was queued.
mod rcu {
    use loom::sync::Mutex;

    type Callback = Box<dyn FnOnce() + Send>;

    #[derive(Default)]
    struct State {
        next: usize,
        readers: Vec<usize>,
        callbacks: Vec<(Vec<usize>, Callback)>,
    }

    loom::lazy_static! {
        static ref STATE: Mutex<State> = Mutex::new(State::default());
    }

    pub struct Guard(usize);

    pub fn read_lock() -> Guard {
        let mut state = STATE.lock().unwrap();
        state.next += 1;
        let reader = state.next;
        state.readers.push(reader);
        Guard(reader)
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            // What is left of a model that has failed is of no interest.
            if std::thread::panicking() {
                return;
            }
            let mut state = STATE.lock().unwrap();
            state.readers.retain(|reader| *reader != self.0);
            for (readers, callback) in std::mem::take(&mut state.callbacks) {
                let readers: Vec<_> = readers.into_iter().filter(|r| *r != self.0).collect();
                if readers.is_empty() {
                    callback();
                } else {
                    state.callbacks.push((readers, callback));
                }
            }
        }
    }

    pub fn call_rcu(callback: Callback) {
        let mut state = STATE.lock().unwrap();
        if state.readers.is_empty() {
            callback();
        } else {
            let readers = state.readers.clone();
            state.callbacks.push((readers, callback));
        }
    }
}

/// The memory of a value, which stays, and tells how often it was freed. loom notices a reader that does not
/// come before that.
struct Memory {
    number: UnsafeCell<usize>,
    freed: AtomicUsize,
}

// loom checks each access.
unsafe impl Send for Memory {}
unsafe impl Sync for Memory {}

impl Memory {
    fn new(number: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            number: UnsafeCell::new(number),
            freed: AtomicUsize::new(0),
        }))
    }

    fn read(&self) -> usize {
        assert_eq!(
            self.freed.load(Relaxed),
            0,
            "a value is used after it was freed"
        );
        self.number.with(|number| unsafe { *number })
    }
}

/// The owner of a value. If it is `HASTY`, it is freed without a grace period.
struct Owner<const HASTY: bool>(&'static Memory);

impl<const HASTY: bool> Drop for Owner<HASTY> {
    fn drop(&mut self) {
        self.0
            .number
            .with_mut(|number| unsafe { *number = usize::MAX });
        self.0.freed.fetch_add(1, Relaxed);
    }
}

unsafe impl<const HASTY: bool> ForeignOwnable for Owner<HASTY> {
    type Borrowed<'a> = &'a Memory;

    fn into_foreign(self) -> *mut c_void {
        (std::mem::ManuallyDrop::new(self).0 as *const Memory)
            .cast_mut()
            .cast()
    }

    unsafe fn from_foreign(ptr: *mut c_void) -> Self {
        Self(unsafe { Self::borrow(ptr) })
    }

    unsafe fn borrow<'a>(ptr: *mut c_void) -> &'a Memory {
        unsafe { &*ptr.cast() }
    }
}

#[derive(Default)]
struct Batch<const HASTY: bool>(Vec<usize>);

impl<const HASTY: bool> Drop for Batch<HASTY> {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.0);
        let free = move || {
            for value in values {
                drop(unsafe { Owner::<HASTY>::from_foreign(value as *mut c_void) });
            }
        };
        if HASTY {
            free();
        } else {
            rcu::call_rcu(Box::new(free));
        }
    }
}

unsafe impl<const HASTY: bool> RcuFree for Owner<HASTY> {
    type Batch = Batch<HASTY>;

    const HAS_CALLBACK: bool = true;

    unsafe fn free_later(ptr: NonNull<c_void>, batch: &mut Batch<HASTY>) {
        batch.0.push(ptr.as_ptr() as usize);
    }
}

type Pointer<const HASTY: bool> = Arc<RcuPtr<Owner<HASTY>>>;

/// Reads twice in one critical section, and the first value once more after the second.
fn read<const HASTY: bool>(ptr: &Pointer<HASTY>, count: usize) {
    let guard = rcu::read_lock();
    let one = ptr.load(&guard).inspect(|one| assert!(one.read() < count));
    let two = ptr.load(&guard).inspect(|two| assert!(two.read() < count));
    for value in [one, two].into_iter().flatten() {
        assert!(value.read() < count);
    }
}

/// Runs `first`, `second` and a reader at a time, on a pointer to the first of `COUNT` values. What
/// runs last drops the pointer.
fn check<const HASTY: bool, const COUNT: usize>(
    first: fn(&Pointer<HASTY>, &[&'static Memory; COUNT]),
    second: fn(&Pointer<HASTY>, &[&'static Memory; COUNT]),
) {
    atomic::model(Some(3), move || {
        let memory: [_; COUNT] = std::array::from_fn(Memory::new);
        let ptr = Arc::new(RcuPtr::new(Some(Owner::<HASTY>(memory[0]))).unwrap());
        // The address does not change any more.
        assert!(ptr.load(&rcu::read_lock()).is_some());
        let (reader, changer) = (ptr.clone(), (ptr.clone(), memory));
        let threads = [
            thread::spawn(move || read(&reader, COUNT)),
            thread::spawn(move || second(&changer.0, &changer.1)),
        ];
        first(&ptr, &memory);
        drop(ptr);
        for thread in threads {
            thread.join().unwrap();
        }
        for memory in &memory {
            assert_eq!(memory.freed.load(Relaxed), 1);
        }
    });
}

#[test]
fn a_value_is_removed() {
    check::<false, 1>(|ptr, _| drop(ptr.replace(None)), |_, _| ());
}

#[test]
fn a_value_is_removed_by_two_threads() {
    check::<false, 1>(
        |ptr, _| drop(ptr.replace(None)),
        |ptr, _| drop(ptr.replace(None)),
    );
}

#[test]
fn a_value_is_removed_and_another_inserted() {
    check::<false, 2>(
        |ptr, _| drop(ptr.replace(None)),
        |ptr, memory| drop(ptr.replace(Some(Owner(memory[1])))),
    );
}

#[test]
fn values_are_freed_as_a_batch() {
    check::<false, 3>(
        |ptr, memory| {
            let mut batch = RcuBatch::new();
            batch.extend(ptr.replace(Some(Owner(memory[1]))));
            batch.extend(ptr.replace(Some(Owner(memory[2]))));
        },
        |_, _| (),
    );
}

// What the checks above would not see if they saw nothing.
#[test]
#[should_panic]
fn without_a_grace_period_a_reader_uses_what_was_freed() {
    check::<true, 1>(|ptr, _| drop(ptr.replace(None)), |_, _| ());
}
