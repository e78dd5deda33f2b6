// SPDX-License-Identifier: GPL-2.0

//! Tests of which BARs can be mapped.

#[macros::kunit_tests(rust_pci_bar)]
mod suite {
    use super::super::*;
    use crate::pci::test_device::{
        each_device,
        skip_unless,
        until_unbind, //
    };

    #[test]
    fn io_ports_are_not_memory() {
        let mut refused = 0;
        each_device(|dev| {
            for index in 0..6 {
                // SAFETY: As for `BoundBar::map`.
                let flags = unsafe { bindings::pci_bar_flags(raw(dev), index) };
                if flags & bindings::IORESOURCE_IO as c_ulong != 0 {
                    let mapped = BoundBar::map(dev, index, c"rust_pci_bar");
                    assert_eq!(mapped.err(), Some(EINVAL));
                    refused += 1;
                }
            }
        });
        skip_unless(refused);
    }

    #[test]
    fn registers_are_unmapped_where_that_can_sleep() -> Result {
        let (mut tested, mut result) = (0, Ok(()));
        each_device(|dev| {
            let map = |index| BoundBar::map(dev, index, c"rust_pci_bar");
            let mut test = |index| -> Result {
                let Ok(bar) = map(index) else {
                    return Ok(());
                };
                tested += 1;
                assert_eq!(map(index).err(), Some(EBUSY));
                let readable = |bar: &BoundBar| {
                    let guard = rcu::read_lock();
                    bar.access(&guard).map(|bar| bar.try_read32(0).is_ok())
                };
                assert_eq!(readable(&bar), Some(true));
                drop(bar);
                let bar = map(index)?;
                let len = bar.len();
                for offset in [2, len - 3, len - 2, len, len + 4, usize::MAX - 3] {
                    assert_eq!(Doorbell::new(bar.clone(), offset).err(), Some(EINVAL));
                }
                let doorbell = Doorbell::new(bar, len - 4)?;
                let context = crate::interrupt::local_interrupt_disable();
                drop(doorbell);
                drop(context);
                // It remains until the driver of the device is unbound.
                assert_eq!(map(index).err(), Some(EBUSY));
                Ok(())
            };
            for index in 0..6 {
                result = result.and_then(|()| until_unbind(dev, || test(index)));
            }
        });
        skip_unless(tested);
        result
    }

    #[test]
    fn registers_of_an_earlier_binding_are_gone() {
        let mut tested = 0;
        each_device(|dev| {
            for index in 0..6 {
                let map = || BoundBar::map(dev, index, c"rust_pci_bar");
                let Ok(kept) = until_unbind(dev, map) else {
                    continue;
                };
                // As if the driver was bound again.
                until_unbind(dev, || {
                    let bar = map();
                    assert!(bar.is_ok());
                    tested += 1;
                    assert!(kept.access(&rcu::read_lock()).is_none());
                    if let Ok(doorbell) = Doorbell::new(kept, 0) {
                        assert_eq!(doorbell.ring(&rcu::read_lock(), 1), Err(ENODEV));
                    }
                });
            }
        });
        skip_unless(tested);
    }

    #[test]
    fn there_are_six_bars() {
        each_device(|dev| {
            for index in [6, 7, 10, 11, u32::MAX] {
                let mapped = BoundBar::map(dev, index, c"rust_pci_bar");
                assert_eq!(mapped.err(), Some(EINVAL));
            }
        });
    }

    #[test]
    fn memory_needs_an_address() {
        let memory = bindings::IORESOURCE_MEM as c_ulong;
        assert!(is_memory(memory));
        assert!(!is_memory(0));
        assert!(!is_memory(bindings::IORESOURCE_IO as c_ulong));
        assert!(!is_memory(memory | bindings::IORESOURCE_UNSET as c_ulong));
        assert!(!is_memory(
            memory | bindings::IORESOURCE_DISABLED as c_ulong
        ));
    }
}
