// SPDX-License-Identifier: GPL-2.0

//! Tests of how long a class remains.

#[macros::kunit_tests(rust_device_class)]
mod suite {
    use super::super::*;
    use crate::{
        module::this_module,
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        },
    };

    static CLASS: Class = Class::new(c"rust_kunit_class", 2);

    struct Value {
        is_dropped: Arc<Atomic<bool>>,
    }

    impl Drop for Value {
        fn drop(&mut self) {
            self.is_dropped.store(true, Relaxed);
        }
    }

    #[vtable]
    impl Operations for Value {
        const ATTRIBUTES: &'static [Attribute<Self>] = &[
            Attribute::ro(c"one", |_this: &Value, page| writeln!(page, "1")),
            Attribute::ro(c"never", |_this: &Value, page| writeln!(page, "2")).only_if(|_| false),
        ];
    }

    fn add(
        name: &CStr,
        minor: Option<u32>,
        is_dropped: &Arc<Atomic<bool>>,
    ) -> Result<ClassDevice<Value>> {
        add_below(None, name, minor, is_dropped)
    }

    fn add_below(
        parent: Option<Arc<Parent>>,
        name: &CStr,
        minor: Option<u32>,
        is_dropped: &Arc<Atomic<bool>>,
    ) -> Result<ClassDevice<Value>> {
        let value = Value {
            is_dropped: is_dropped.clone(),
        };
        let options = ClassDeviceOptions {
            name,
            parent,
            minor,
        };
        ClassDevice::new(&CLASS, options, Arc::new(value, GFP_KERNEL)?)
    }

    // One test: they share the class.
    #[test]
    fn a_class_remains_as_long_as_its_devices() -> Result {
        let owner = this_module::<crate::LocalModule>();
        let is_dropped = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        assert_eq!(add(c"rust_kunit0", None, &is_dropped).err(), Some(ENODEV));
        assert!(is_dropped.load(Relaxed));

        let class = Registration::new(&CLASS, owner)?;
        assert_eq!(Registration::new(&CLASS, owner).err(), Some(EBUSY));
        // There are two minors.
        assert_eq!(
            add(c"rust_kunit0", Some(2), &is_dropped).err(),
            Some(EINVAL)
        );
        assert_eq!(add(c"", Some(1), &is_dropped).err(), Some(EINVAL));

        is_dropped.store(false, Relaxed);
        let device = add(c"rust_kunit0", Some(1), &is_dropped)?;
        assert_eq!(device.device().name(), c"rust_kunit0");
        assert_eq!(
            add(
                c"rust_kunit3",
                Some(1),
                &Arc::new(Atomic::new(false), GFP_KERNEL)?
            )
            .err(),
            Some(EBUSY)
        );
        // As its parent, another one holds it.
        let parent = device.as_parent()?;
        let other = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        let child = add_below(Some(parent.clone()), c"rust_kunit1", None, &other)?;
        let removed = child.as_parent()?;
        drop(child);
        // Otherwise the child is removed a little later.
        if cfg!(CONFIG_PREEMPT_COUNT) {
            let grandchild = add_below(Some(removed), c"rust_kunit2", Some(0), &other);
            assert!(grandchild.is_err());
        }
        drop(class);
        assert_eq!(Registration::new(&CLASS, owner).err(), Some(EBUSY));
        drop(device);
        assert!(!is_dropped.load(Relaxed));
        drop(parent);

        // Where the drops are left to a work item, this is over a little later.
        Ok(())
    }
}
