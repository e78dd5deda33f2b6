// SPDX-License-Identifier: GPL-2.0

//! Tests of where a store is dropped.

#[macros::kunit_tests(rust_page_store_drop)]
mod suite {
    use super::super::{
        super::witness::Witness,
        *, //
    };
    use crate::{
        impl_has_hr_timer,
        interrupt::local_interrupt_disable,
        new_spinlock, new_spinlock_irq,
        page::PAGE_SIZE,
        sync::{
            rcu,
            Arc,
            ArcBorrow,
            SpinLockIrq, //
        },
        time::{
            delay::fsleep,
            hrtimer::{
                HrTimer,
                HrTimerCallback,
                HrTimerCallbackContext,
                HrTimerPointer,
                HrTimerRestart,
                RelativeMode, //
            },
            Delta,
            Monotonic, //
        },
    };

    type Store = Pin<KBox<PageStore>>;

    /// Has `within` drop a store with a page, of which another is given to RCU, and waits for both.
    fn drops(within: impl FnOnce(Store) -> Result) -> Result {
        let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
        let mut pages = KVec::new();
        for page in 0..2 {
            let at = page * PAGE_SIZE as u64;
            store.write_bytes(at, b"x")?;
            let part = Chunk::new(at, at + 1).part().ok_or(EINVAL)?;
            pages.push(Witness::new(&store.tree, part)?, GFP_KERNEL)?;
        }
        store.remove_bytes(0, 1 << 12)?;
        within(store)?;
        // A worker may have to do it.
        for _ in 0..1000 {
            if pages.iter().all(Witness::is_freed) {
                return Ok(());
            }
            fsleep(Delta::from_millis(10));
        }
        Err(ETIMEDOUT)
    }

    #[test]
    fn dropped_by_a_task() -> Result {
        drops(|store| {
            drop(store);
            Ok(())
        })
    }

    // That the drop does not sleep in these is seen in the log.
    #[test]
    fn dropped_with_interrupts_disabled() -> Result {
        drops(|store| {
            let _off = local_interrupt_disable();
            drop(store);
            Ok(())
        })
    }

    #[test]
    fn dropped_under_a_lock() -> Result {
        let lock = KBox::pin_init(new_spinlock!(()), GFP_KERNEL)?;
        drops(|store| {
            let _guard = lock.lock();
            drop(store);
            Ok(())
        })
    }

    /// A timer that drops a store.
    #[pin_data]
    struct Dropper {
        #[pin]
        timer: HrTimer<Self>,
        #[pin]
        store: SpinLockIrq<Option<Store>>,
    }

    impl HrTimerCallback for Dropper {
        type Pointer<'a> = Arc<Self>;

        fn run(
            this: ArcBorrow<'_, Self>,
            _context: HrTimerCallbackContext<'_, Self>,
        ) -> HrTimerRestart {
            let store = this.store.lock().take();
            drop(store);
            HrTimerRestart::NoRestart
        }
    }

    impl_has_hr_timer! {
        impl HasHrTimer<Self> for Dropper {
            mode: RelativeMode<Monotonic>, field: self.timer
        }
    }

    #[test]
    fn dropped_by_an_interrupt_handler() -> Result {
        drops(|store| {
            let dropper = Arc::pin_init(
                pin_init!(Dropper {
                    timer <- HrTimer::new(),
                    store <- new_spinlock_irq!(Some(store)),
                }),
                GFP_KERNEL,
            )?;
            let timer = dropper.clone().start(Delta::from_micros(100));
            while dropper.store.lock().is_some() {
                fsleep(Delta::from_millis(1));
            }
            drop(timer);
            Ok(())
        })
    }

    #[test]
    fn dropped_in_a_read_section() -> Result {
        drops(|store| {
            let _section = rcu::read_lock();
            drop(store);
            Ok(())
        })
    }
}
