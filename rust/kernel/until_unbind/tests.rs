// SPDX-License-Identifier: GPL-2.0

//! Tests of when a resource is released.

#[macros::kunit_tests(rust_until_unbind)]
mod suite {
    use super::super::*;
    use crate::{
        faux,
        new_mutex,
        sync::Mutex,
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue, //
    };

    /// Counts how often it is released.
    struct Resource(Atomic<u32>);

    impl Release for Resource {
        fn release(&self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Takes a while to be released.
    #[pin_data]
    struct Slow {
        #[pin]
        begun: Completion,
        is_released: Atomic<bool>,
    }

    impl Release for Slow {
        fn release(&self) {
            self.begun.complete_all();
            fsleep(Delta::from_millis(100));
            self.is_released.store(true, Relaxed);
        }
    }

    /// Owns itself.
    #[pin_data]
    struct Cycle {
        #[pin]
        this: Mutex<Option<UntilUnbind<Cycle>>>,
        released: Atomic<u32>,
    }

    impl Release for Cycle {
        fn release(&self) {
            let this = self.this.lock().take();
            drop(this);
            self.released.fetch_add(1, Relaxed);
        }
    }

    /// Returns a device that is bound, a resource of it, and the same resource again.
    fn make() -> Result<(faux::Registration, UntilUnbind<Resource>, Arc<Resource>)> {
        let dev = faux::Registration::new(c"rust_until_unbind", None)?;
        let resource = Arc::new(Resource(Atomic::new(0)), GFP_KERNEL)?;
        let bound: &faux::Device<Bound> = dev.as_ref();
        let managed =
            UntilUnbind::new(bound.as_ref(), resource.clone(), ModulePin::of_this_code()?)?;
        Ok((dev, managed, resource))
    }

    fn released(resource: &Arc<Resource>) -> u32 {
        resource.0.load(Relaxed)
    }

    #[test]
    fn a_resource_is_released_when_dropped() -> Result {
        let (dev, managed, resource) = make()?;
        assert_eq!(released(&resource), 0);
        drop(managed);
        assert_eq!(released(&resource), 1);
        drop(dev);
        assert_eq!(released(&resource), 1);
        Ok(())
    }

    #[test]
    fn a_resource_is_released_when_its_driver_is_unbound() -> Result {
        let (dev, managed, resource) = make()?;
        // As if it were leaked.
        drop(dev);
        assert_eq!(released(&resource), 1);
        drop(managed);
        assert_eq!(released(&resource), 1);
        Ok(())
    }

    #[test]
    fn where_sleeping_is_impossible_it_is_released_later() -> Result {
        let (dev, managed, resource) = make()?;
        // Tracked in all kernels.
        let context = crate::interrupt::local_interrupt_disable();
        drop(managed);
        drop(context);
        assert_eq!(released(&resource), 0);
        drop(dev);
        assert_eq!(released(&resource), 1);
        Ok(())
    }

    #[test]
    fn the_unbinding_waits_for_a_task_that_releases() -> Result {
        let dev = faux::Registration::new(c"rust_until_unbind", None)?;
        let slow = Arc::pin_init(
            pin_init!(Slow {
                begun <- Completion::new(),
                is_released: Atomic::new(false),
            }),
            GFP_KERNEL,
        )?;
        let bound: &faux::Device<Bound> = dev.as_ref();
        let managed = UntilUnbind::new(bound.as_ref(), slow.clone(), ModulePin::of_this_code()?)?;
        workqueue::system().try_spawn(GFP_KERNEL, move || drop(managed))?;
        slow.begun.wait_for_completion();
        drop(dev);
        assert!(slow.is_released.load(Relaxed));
        Ok(())
    }

    #[test]
    fn a_resource_may_own_itself() -> Result {
        let dev = faux::Registration::new(c"rust_until_unbind", None)?;
        let cycle = Arc::pin_init(
            pin_init!(Cycle {
                this <- new_mutex!(None),
                released: Atomic::new(0),
            }),
            GFP_KERNEL,
        )?;
        let bound: &faux::Device<Bound> = dev.as_ref();
        let managed = UntilUnbind::new(bound.as_ref(), cycle.clone(), ModulePin::of_this_code()?)?;
        *cycle.this.lock() = Some(managed);
        drop(dev);
        assert_eq!(cycle.released.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn a_resource_may_be_left_to_the_unbinding() -> Result {
        let dev = faux::Registration::new(c"rust_until_unbind", None)?;
        let bound: &faux::Device<Bound> = dev.as_ref();
        let make = || -> Result<_> {
            let resource = Arc::new(Resource(Atomic::new(0)), GFP_KERNEL)?;
            let pin = ModulePin::of_this_code()?;
            let managed = AtUnbind::new(bound.as_ref(), resource.clone(), pin)?;
            Ok((managed, resource))
        };
        let (left, first) = make()?;
        let (managed, second) = make()?;
        drop(left);
        assert_eq!(released(&first), 0);
        managed.release();
        assert_eq!(released(&second), 1);
        managed.release();
        drop(managed);
        drop(dev);
        assert_eq!(released(&first), 1);
        assert_eq!(released(&second), 1);
        Ok(())
    }
}
