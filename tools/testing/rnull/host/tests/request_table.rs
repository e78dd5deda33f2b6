// SPDX-License-Identifier: GPL-2.0

//! Checks in all interleavings that a slot of a request table passes each entry from the submitter
//! to the completer once, and that they never access it at the same time.

extern crate self as kernel;

#[path = "model/atomic.rs"]
mod atomic;
#[path = "model/kvec.rs"]
pub mod prelude;
#[path = "../../../../../rust/kernel/block/mq/request_table/slots.rs"]
mod slots;

use atomic::{Acquire, Atomic, Relaxed, Release};
use loom::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc,
    },
    thread,
};
use slots::Slots;

mod sync {
    pub(crate) use crate::atomic;
}

mod types {
    use std::{cell::UnsafeCell, mem::MaybeUninit};

    /// The type of the kernel crate. loom takes each use of its pointer for a write.
    pub struct Opaque<T> {
        access: loom::cell::UnsafeCell<()>,
        value: UnsafeCell<MaybeUninit<T>>,
    }

    impl<T> Opaque<T> {
        pub fn uninit() -> Self {
            Self {
                access: loom::cell::UnsafeCell::new(()),
                value: UnsafeCell::new(MaybeUninit::uninit()),
            }
        }

        pub fn get(&self) -> *mut T {
            self.access.with_mut(|_| ());
            self.value.get().cast()
        }
    }
}

/// The request that is in the only slot, of tag 0. It is never dereferenced.
const RQ: *mut u8 = 8 as *mut u8;

/// An entry, whose content is its identifier.
type Entry = Box<u16>;

struct Table {
    slots: Slots<u8, Entry>,
    /// Whether the tag is in use, as in C's bitmap.
    is_busy: Atomic<bool>,
    /// Incremented before each step, which orders no other access: loom tries few interleavings
    /// where threads load a word, before one of them stores to it.
    steps: AtomicUsize,
}

impl Table {
    fn new() -> Arc<Self> {
        let table = Arc::new(Self {
            slots: Slots::new(1).unwrap(),
            is_busy: Atomic::new(false),
            steps: AtomicUsize::new(0),
        });
        // The atomics stay where they are now.
        assert!(!table.is_busy.load(Relaxed) && table.slots.count_full() == 0);
        table
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Submits an entry if the slot is vacant.
    fn submit(&self) -> Option<u16> {
        self.step();
        let (slot, id) = unsafe { self.slots.vacant(0)? };
        unsafe { slot.fill(RQ, id, Box::new(id)) };
        Some(id)
    }

    fn take(&self, id: u16) -> Option<u16> {
        self.step();
        let entry = unsafe { self.slots.take(id) };
        entry
            .inspect(|entry| assert_eq!(**entry, id))
            .map(|entry| *entry)
    }
}

/// Runs `submit` and `complete` at the same time. Checks that the identifiers that they return are
/// the same ones, after the remaining entries were removed.
fn check(submit: fn(&Table) -> Vec<u16>, complete: fn(&Table) -> Vec<u16>) {
    atomic::model(None, move || {
        let table = Table::new();
        let other = table.clone();
        let completer = thread::spawn(move || complete(&other));
        let submitted = submit(&table);
        let mut taken = completer.join().unwrap();
        assert_eq!(table.slots.count_full(), submitted.len() - taken.len());
        unsafe { table.slots.drain(|entry| taken.push(*entry)) };
        assert_eq!(submitted, taken);
        assert_eq!(table.slots.count_full(), 0);
    });
}

fn submit_twice(table: &Table) -> Vec<u16> {
    (0..2).filter_map(|_| table.submit()).collect()
}

#[test]
fn each_entry_is_taken_once() {
    // Identifiers of the device in an order of its own.
    check(submit_twice, |table| {
        [2, 1, 1, 2]
            .into_iter()
            .filter_map(|id| table.take(id))
            .collect()
    });
}

#[test]
fn each_entry_is_drained_once() {
    check(submit_twice, |table| {
        let mut taken = Vec::new();
        for _ in 0..2 {
            table.step();
            unsafe { table.slots.drain(|entry| taken.push(*entry)) };
        }
        taken
    });
}

#[test]
fn the_slot_of_a_free_tag_is_vacant() {
    check(
        |table| {
            let mut submitted = Vec::new();
            for _ in 0..3 {
                table.step();
                if !table.is_busy.load(Acquire) {
                    table.is_busy.store(true, Relaxed);
                    submitted.push(table.submit().expect("the slot of a free tag is full"));
                }
            }
            submitted
        },
        |table| {
            let mut taken = Vec::new();
            for id in [1, 2] {
                if let Some(id) = table.take(id) {
                    taken.push(id);
                    // The request ends.
                    table.step();
                    table.is_busy.store(false, Release);
                }
            }
            taken
        },
    );
}

#[test]
fn a_request_is_found_while_it_is_in_the_table() {
    atomic::model(None, || {
        let table = Table::new();
        let other = table.clone();
        assert_eq!(table.submit(), Some(1));
        let timeout = thread::spawn(move || {
            let found = [0, 0].map(|_| {
                other.step();
                other.slots.contains(0, RQ)
            });
            // Another request is not found, nor is one that has another tag.
            assert!(!other.slots.contains(0, 16 as *const u8));
            assert!(!other.slots.contains(1, RQ));
            found
        });
        assert_eq!(unsafe { table.slots.id_of(0, RQ) }, Some(1));
        assert_eq!(table.take(1), Some(1));
        assert_eq!(unsafe { table.slots.id_of(0, RQ) }, None);
        // It does not come back.
        assert_ne!(timeout.join().unwrap(), [false, true]);
    });
}

// What the checks above would not see if they saw nothing.

#[test]
#[should_panic]
fn two_submitters_fill_one_slot() {
    atomic::model(None, || {
        let table = Table::new();
        let other = table.clone();
        let submitter = thread::spawn(move || other.submit());
        table.submit();
        submitter.join().unwrap();
    });
}

#[test]
#[should_panic]
fn two_completers_take_one_entry() {
    atomic::model(None, || {
        let table = Table::new();
        table.submit();
        let other = table.clone();
        // The entry is not freed twice.
        let take = |table: &Table| {
            table.step();
            unsafe { table.slots.take(1).map(std::mem::forget) }
        };
        let completer = thread::spawn(move || take(&other));
        take(&table);
        completer.join().unwrap();
    });
}
