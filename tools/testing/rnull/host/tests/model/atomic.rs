// SPDX-License-Identifier: GPL-2.0

//! The atomics of the kernel crate for loom, which tries all interleavings and all values that the
//! memory model allows a load to return.
//!
//! loom makes its atomics anew for each execution, and not in a `const fn`. So an atomic is found by
//! its address, at which it stays from its first use on.

// No test uses all of this.
#![allow(unused_imports)]

pub use Order::*;

use loom::sync::atomic::{fence, AtomicUsize, Ordering};
use std::{
    collections::HashMap,
    marker::PhantomData,
    sync::{Arc, Mutex},
};

loom::lazy_static! {
    static ref WORDS: Mutex<HashMap<usize, Arc<AtomicUsize>>> = Mutex::new(HashMap::new());
}

pub enum Order {
    Relaxed,
    Acquire,
    Release,
    Full,
}

/// Runs `f` in all interleavings, or in those with so many preemptions. A switch where a thread
/// waits or ends is none.
pub fn model(preemptions: Option<usize>, f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(f);
}

/// What is in a word.
pub trait Value: Copy {
    fn to_word(self) -> usize;
    fn from_word(word: usize) -> Self;
}

impl Value for usize {
    fn to_word(self) -> usize {
        self
    }

    fn from_word(word: usize) -> Self {
        word
    }
}

impl Value for u32 {
    fn to_word(self) -> usize {
        self as usize
    }

    fn from_word(word: usize) -> Self {
        word as u32
    }
}

impl Value for bool {
    fn to_word(self) -> usize {
        self.into()
    }

    fn from_word(word: usize) -> Self {
        word != 0
    }
}

impl<T> Value for *mut T {
    fn to_word(self) -> usize {
        self as usize
    }

    fn from_word(word: usize) -> Self {
        word as *mut T
    }
}

pub struct Atomic<T> {
    value: T,
    _not_a_constant: PhantomData<AtomicUsize>,
}

// Each access goes to the word.
unsafe impl<T> Send for Atomic<T> {}
unsafe impl<T> Sync for Atomic<T> {}

impl<T: Value> Atomic<T> {
    pub const fn new(value: T) -> Self {
        Self {
            value,
            _not_a_constant: PhantomData,
        }
    }

    fn word(&self) -> Arc<AtomicUsize> {
        let mut words = WORDS.lock().unwrap();
        let new = || Arc::new(AtomicUsize::new(self.value.to_word()));
        words
            .entry(self as *const Self as usize)
            .or_insert_with(new)
            .clone()
    }

    pub fn load(&self, order: Order) -> T {
        // What is left of a model that has failed is of no interest.
        if std::thread::panicking() {
            return T::from_word(0);
        }
        T::from_word(self.word().load(match order {
            Relaxed => Ordering::Relaxed,
            Acquire => Ordering::Acquire,
            _ => panic!("no load is of that order"),
        }))
    }

    pub fn store(&self, value: T, order: Order) {
        let order = match order {
            Relaxed => Ordering::Relaxed,
            Release => Ordering::Release,
            _ => panic!("no store is of that order"),
        };
        // Not a store: loom lets an exchange come after one that it has not seen.
        self.word().swap(value.to_word(), order);
    }

    pub fn xchg(&self, value: T, order: Order) -> T {
        assert!(matches!(order, Full));
        fence(Ordering::SeqCst);
        let old = self.word().swap(value.to_word(), Ordering::AcqRel);
        fence(Ordering::SeqCst);
        T::from_word(old)
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.value = self.load(Relaxed);
        &mut self.value
    }
}

/// The barriers of the kernel crate.
pub mod barrier {
    pub use Barrier::*;

    use loom::sync::atomic::{fence, Ordering};

    pub enum Barrier {
        Read,
        Write,
        Full,
    }

    pub fn smp_mb(barrier: Barrier) {
        fence(match barrier {
            Barrier::Read => Ordering::Acquire,
            Barrier::Write => Ordering::Release,
            Barrier::Full => Ordering::SeqCst,
        });
    }
}
