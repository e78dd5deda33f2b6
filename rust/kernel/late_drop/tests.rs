// SPDX-License-Identifier: GPL-2.0

//! Tests of where a value is dropped at once.

#[macros::kunit_tests(rust_late_drop)]
mod suite {
    use super::super::*;
    use crate::{
        new_spinlock,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            rcu,
            Arc,
            Completion, //
        },
    };

    /// What the tests look at: whether the value is gone, and a wait for that.
    #[pin_data]
    struct Seen {
        gone: Atomic<bool>,
        #[pin]
        completion: Completion,
    }

    struct Value(Arc<Seen>);

    impl Drop for Value {
        fn drop(&mut self) {
            // Where this must not happen, the kernel says so.
            //
            // SAFETY: Sleeps.
            unsafe { bindings::synchronize_rcu() };
            self.0.gone.store(true, Relaxed);
            self.0.completion.complete_all();
        }
    }

    fn make() -> Result<(LateDrop<Value>, Arc<Seen>)> {
        let seen = Arc::pin_init(
            pin_init!(Seen {
                gone: Atomic::new(false),
                completion <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        let init = Ok(Value(seen.clone()));
        let value = LateDrop::new(ModulePin::of_this_code()?, init, GFP_KERNEL)?;
        Ok((value, seen))
    }

    /// Has `within` drop the value, and expects that to happen after it has returned.
    fn drops_late(within: impl FnOnce(LateDrop<Value>)) -> Result {
        let (value, seen) = make()?;
        within(value);
        seen.completion.wait_for_completion();
        assert!(seen.gone.load(Relaxed));
        Ok(())
    }

    #[test]
    fn a_task_drops_at_once() -> Result {
        let (value, seen) = make()?;
        assert!(!value.0.gone.load(Relaxed));
        drop(value);
        assert_eq!(seen.gone.load(Relaxed), cfg!(CONFIG_PREEMPT_COUNT));
        seen.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn where_no_task_may_wait_a_worker_drops() -> Result {
        drops_late(|value| {
            let _section = rcu::read_lock();
            assert!(!may_wait());
            drop(value);
        })?;
        let lock = KBox::pin_init(new_spinlock!(()), GFP_KERNEL)?;
        drops_late(|value| {
            let _guard = lock.lock();
            assert!(!may_wait());
            drop(value);
        })?;
        drops_late(|value| {
            // SAFETY: Any task may call this.
            let allowed = unsafe { bindings::blk_noio_save() };
            assert!(!may_wait());
            assert_eq!(can_wait(), Err(EDEADLK));
            drop(value);
            // SAFETY: As above; it is what was saved.
            unsafe { bindings::blk_noio_restore(allowed) };
        })
    }
}
