// SPDX-License-Identifier: GPL-2.0

//! Tests of the contexts in which a value is dropped at once.

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

    /// Tells a test whether the value was dropped, and allows it to wait for that.
    #[pin_data]
    struct DropEvent {
        dropped: Atomic<bool>,
        #[pin]
        completion: Completion,
    }

    struct Value(Arc<DropEvent>);

    impl Drop for Value {
        fn drop(&mut self) {
            // The kernel warns where the drop must not sleep.
            //
            // SAFETY: The drop of the value may sleep.
            unsafe { bindings::synchronize_rcu() };
            self.0.dropped.store(true, Relaxed);
            self.0.completion.complete_all();
        }
    }

    fn make() -> Result<(LateDrop<Value>, Arc<DropEvent>)> {
        let event = Arc::pin_init(
            pin_init!(DropEvent {
                dropped: Atomic::new(false),
                completion <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        let init = Ok(Value(event.clone()));
        let value = LateDrop::new(ModulePin::of_this_code()?, init, GFP_KERNEL)?;
        Ok((value, event))
    }

    /// Calls `within` to drop a value, and waits until a work item has dropped it.
    fn assert_drops_later(within: impl FnOnce(LateDrop<Value>)) -> Result {
        let (value, event) = make()?;
        within(value);
        event.completion.wait_for_completion();
        assert!(event.dropped.load(Relaxed));
        Ok(())
    }

    #[test]
    fn a_task_drops_at_once() -> Result {
        let (value, event) = make()?;
        assert!(!value.0.dropped.load(Relaxed));
        drop(value);
        assert_eq!(event.dropped.load(Relaxed), cfg!(CONFIG_PREEMPT_COUNT));
        event.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn a_work_item_drops_for_a_task_that_could_wait() -> Result {
        assert_drops_later(|value| value.drop_in_worker())
    }

    #[test]
    fn a_work_item_drops_where_the_caller_cannot_wait() -> Result {
        assert_drops_later(|value| {
            let _section = rcu::read_lock();
            assert!(!may_wait());
            drop(value);
        })?;
        let lock = KBox::pin_init(new_spinlock!(()), GFP_KERNEL)?;
        assert_drops_later(|value| {
            let _guard = lock.lock();
            assert!(!may_wait());
            drop(value);
        })?;
        #[cfg(CONFIG_BLOCK)]
        assert_drops_later(|value| {
            // SAFETY: Any task may call this.
            let allowed = unsafe { bindings::blk_noio_save() };
            assert!(!may_wait());
            assert_eq!(check_may_wait(), Err(EDEADLK));
            drop(value);
            // SAFETY: As above; it is what was saved.
            unsafe { bindings::blk_noio_restore(allowed) };
        })?;
        Ok(())
    }
}
