// SPDX-License-Identifier: GPL-2.0

//! Checks in all interleavings that no callback of RCU is left when the last container of an external
//! module is gone, although not each of them waits.

#[path = "model/atomic.rs"]
mod atomic;
#[path = "../../../../../rust/kernel/sync/rcu_free/callbacks.rs"]
mod callbacks;

use callbacks::Callbacks;
use loom::{sync::Arc, thread};

mod prelude {
    #[derive(Debug)]
    pub struct Error;
    pub type Result<T = ()> = core::result::Result<T, Error>;
    pub const GFP_KERNEL: () = ();
}

mod alloc {
    pub mod flags {
        pub const GFP_NOWAIT: () = ();
    }
}

mod sync {
    pub(crate) use crate::{atomic, atomic::barrier, rcu};
}

mod late_drop {
    use crate::{module_pin::ModulePin, prelude::*};

    pub fn may_wait() -> bool {
        true
    }

    /// A value, then the pin of its module.
    pub struct LateDrop<T>(#[allow(dead_code)] T, #[allow(dead_code)] ModulePin);

    impl<T> LateDrop<T> {
        pub fn new(pin: ModulePin, value: Result<T>, _flags: ()) -> Result<Self> {
            Ok(Self(value?, pin))
        }
    }
}

mod module_pin {
    use crate::{prelude::*, rcu};
    use loom::sync::atomic::{AtomicUsize, Ordering::*};

    loom::lazy_static! {
        static ref PINS: AtomicUsize = AtomicUsize::new(0);
    }

    /// Without a pin, the module is freed.
    pub struct ModulePin(());

    impl ModulePin {
        pub fn of_this_code() -> Result<Self> {
            PINS.fetch_add(1, Relaxed);
            Ok(Self(()))
        }
    }

    impl Drop for ModulePin {
        fn drop(&mut self) {
            if PINS.fetch_sub(1, AcqRel) == 1 {
                assert!(rcu::is_idle(), "a callback runs after the module was freed");
            }
        }
    }
}

/// Callbacks that are queued without any order but that of the code that queues them, and that only
/// a barrier runs.
mod rcu {
    use loom::sync::atomic::{AtomicUsize, Ordering::*};

    loom::lazy_static! {
        static ref QUEUED: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    }

    pub fn call_rcu(cpu: usize) {
        QUEUED[cpu].store(1, Relaxed);
    }

    pub fn rcu_barrier() {
        for queued in QUEUED.iter() {
            if queued.load(Relaxed) == 1 {
                queued.store(0, Relaxed);
            }
        }
    }

    pub fn is_idle() -> bool {
        QUEUED.iter().all(|queued| queued.load(Relaxed) == 0)
    }
}

/// Frees something in a callback, `times` times.
fn free(cpu: usize, times: usize, mark: fn()) {
    for _ in 0..times {
        rcu::call_rcu(cpu);
        mark();
    }
}

/// Drops two containers at a time that have queued callbacks. A third one holds the module while
/// they are made.
fn check(first: usize, second: usize, mark: fn()) {
    atomic::model(None, move || {
        rcu::is_idle();
        let (one, two) = (Callbacks::new(true).unwrap(), Callbacks::new(true).unwrap());
        let thread = thread::spawn(move || {
            free(1, second, mark);
            drop(two);
        });
        free(0, first, mark);
        drop(one);
        thread.join().unwrap();
        assert!(rcu::is_idle());
    });
}

#[test]
fn one_container_has_callbacks() {
    check(1, 0, Callbacks::queued);
}

#[test]
fn two_containers_have_callbacks() {
    check(1, 1, Callbacks::queued);
}

#[test]
fn one_of_them_queues_twice() {
    check(1, 2, Callbacks::queued);
}

#[test]
fn two_threads_share_a_container() {
    atomic::model(None, || {
        rcu::is_idle();
        let one = Arc::new(Callbacks::new(true).unwrap());
        let (two, other) = (one.clone(), Callbacks::new(true).unwrap());
        let thread = thread::spawn(move || {
            free(1, 1, Callbacks::queued);
            drop(two);
        });
        free(0, 1, Callbacks::queued);
        drop(one);
        drop(other);
        thread.join().unwrap();
    });
}

#[test]
fn a_container_without_callbacks_has_no_pin() {
    atomic::model(None, || drop(Callbacks::new(false).unwrap()));
}

// What the checks above would not see if they saw nothing.
#[test]
#[should_panic]
fn without_the_flag_callbacks_are_left() {
    check(1, 1, || ());
}
