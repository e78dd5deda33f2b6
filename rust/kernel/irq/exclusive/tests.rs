// SPDX-License-Identifier: GPL-2.0

//! Tests of handlers for the interrupt line of a device.

#[macros::kunit_tests(rust_irq_exclusive)]
mod suite {
    use super::super::*;
    use crate::{
        device::Core,
        pci::{
            test_device::{
                each_device,
                skip_unless,
                until_unbind, //
            },
            vectors::tests::line, //
        },
    };

    /// Leaves the interrupts to the driver of the device.
    struct Idle(Arc<Atomic<u32>>);

    #[vtable]
    impl Handler for Idle {
        fn handle(&mut self, _guard: &rcu::Guard) -> IrqReturn {
            IrqReturn::None
        }
    }

    impl Drop for Idle {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Calls `f` with each device that has a line.
    fn each_device_with_line(
        mut f: impl FnMut(&pci::Device<Core<'_>>, Arc<IrqVectors>) -> Result,
    ) -> Result {
        let (mut tested, mut result) = (0, Ok(()));
        each_device(|dev| {
            let test = || match IrqVectors::new(dev, line()) {
                Ok(vectors) => {
                    tested += 1;
                    f(dev, vectors)
                }
                Err(_) => Ok(()),
            };
            result = result.and(until_unbind(dev, test));
        });
        skip_unless(tested);
        result
    }

    #[test]
    fn a_handler_can_be_masked() -> Result {
        each_device_with_line(|dev, vectors| {
            let dropped = Arc::new(Atomic::new(0), GFP_KERNEL)?;
            let handler = Idle(dropped.clone());
            let handler = Exclusive::new(dev, &vectors, 0, c"rust_irq", handler)?;
            assert_eq!(handler.with_masked(|idle| idle.0.load(Relaxed)), Ok(0));
            let nested = handler.with_masked(|_| handler.with_masked(|_| ()));
            assert_eq!(nested, Ok(Err(EDEADLK)));
            let context = crate::interrupt::local_interrupt_disable();
            let atomic = handler.with_masked(|_| ());
            drop(context);
            assert_eq!(atomic, Err(EDEADLK));
            assert_eq!(handler.with_masked(|_| ()), Ok(()));
            drop(handler);
            assert_eq!(dropped.load(Relaxed), 1);
            Ok(())
        })
    }

    #[test]
    fn a_vector_may_have_several_handlers() -> Result {
        each_device_with_line(|dev, vectors| {
            let dropped = Arc::new(Atomic::new(0), GFP_KERNEL)?;
            let new = || Exclusive::new(dev, &vectors, 0, c"rust_irq", Idle(dropped.clone()));
            let (first, second) = (new()?, new()?);
            // Each can be masked while the other is registered, and removed.
            assert_eq!(first.with_masked(|_| ()), Ok(()));
            assert_eq!(second.with_masked(|_| ()), Ok(()));
            drop(first);
            assert_eq!(second.with_masked(|idle| idle.0.load(Relaxed)), Ok(1));
            drop(second);
            assert_eq!(dropped.load(Relaxed), 2);
            Ok(())
        })
    }

    #[test]
    fn vectors_are_not_freed_while_they_have_a_handler() -> Result {
        each_device_with_line(|dev, vectors| {
            let handler = Idle(Arc::new(Atomic::new(0), GFP_KERNEL)?);
            let handler = Exclusive::new(dev, &vectors, 0, c"rust_irq", handler)?;
            let other = vectors.clone();
            assert_eq!(IrqVectors::free(vectors, dev), Err(EBUSY));
            drop(handler);
            IrqVectors::free(other, dev)?;
            IrqVectors::free(IrqVectors::new(dev, line())?, dev)
        })
    }

    #[test]
    fn a_handler_is_removed_with_the_binding() -> Result {
        each_device_with_line(|dev, vectors| {
            let dropped = Arc::new(Atomic::new(0), GFP_KERNEL)?;
            let handler = until_unbind(dev, || {
                Exclusive::new(dev, &vectors, 0, c"rust_irq", Idle(dropped.clone()))
            })?;
            assert_eq!(dropped.load(Relaxed), 1);
            assert_eq!(handler.with_masked(|_| ()), Err(ENODEV));
            drop(handler);
            assert_eq!(dropped.load(Relaxed), 1);
            Ok(())
        })
    }

    #[test]
    fn names_are_those_of_directories() {
        for name in [
            c"",
            c".",
            c"..",
            c"a/b",
            c"spurious",
            c"node",
            c"smp_affinity_list",
        ] {
            assert_eq!(check_name(name), Err(EINVAL));
        }
        assert_eq!(check_name(c"nvme0q1"), Ok(()));
        let mut bytes = [b'a'; MAX_NAME + 2];
        bytes[MAX_NAME + 1] = 0;
        let name = CStr::from_bytes_with_nul(&bytes);
        assert_eq!(name.map(check_name), Ok(Err(EINVAL)));
        let name = CStr::from_bytes_with_nul(&bytes[1..]);
        assert_eq!(name.map(check_name), Ok(Ok(())));
    }
}
