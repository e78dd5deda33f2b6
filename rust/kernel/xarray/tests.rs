// SPDX-License-Identifier: GPL-2.0

//! Tests of arrays: borders, errors, reservations, cursors, the end of values.

#[macros::kunit_tests(rust_xarray_wrapper)]
mod suite {
    use super::super::*;
    use crate::{
        folio::{
            tests::Witness,
            FolioBox, //
        },
        impl_has_hr_timer, new_spinlock_irq,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            rcu_box::RcuBox,
            rcu_free::RcuBatch,
            Arc,
            ArcBorrow,
            Completion,
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
            Instant,
            Monotonic, //
        },
        workqueue,
    };

    /// Indices at the borders of nodes, and those beside them.
    const BORDERS: [usize; 12] = [
        0,
        1,
        62,
        63,
        64,
        65,
        4095,
        4096,
        1 << 18,
        (1 << 30) - 1,
        usize::MAX - 1,
        usize::MAX,
    ];

    type Numbers<M = Rcu> = XArray<RcuBox<usize>, M>;

    fn numbers<M: Mode<RcuBox<usize>>>() -> Result<Pin<KBox<Numbers<M>>>> {
        KBox::pin_init(XArray::new(c"tests", static_lock_class!()), GFP_KERNEL)
    }

    /// An array whose lock may be held together with that of another.
    fn source() -> Result<Pin<KBox<Numbers<Locked>>>> {
        KBox::pin_init(XArray::new(c"source", static_lock_class!()), GFP_KERNEL)
    }

    fn number(i: usize) -> Result<RcuBox<usize>> {
        Ok(RcuBox::new(i, GFP_KERNEL)?)
    }

    #[test]
    fn values_are_found_where_they_were_inserted() -> Result {
        let xa = numbers::<Rcu>()?;
        for i in BORDERS {
            xa.insert(i, number(i)?, GFP_KERNEL)?;
        }
        let reader = rcu::read_lock();
        for i in BORDERS {
            assert_eq!(xa.load(&reader, i), Some(&i));
            assert_eq!(xa.find(&reader, i..=i), Some((i, &i)));
        }
        for i in [2, 61, 66, 127, 128, 4094, 4097, 1 << 30, usize::MAX - 2] {
            assert_eq!(xa.load(&reader, i), None);
            assert_eq!(xa.find(&reader, i..=i), None);
        }
        assert_eq!(xa.find(&reader, 2..=61), None);
        assert_eq!(xa.find(&reader, 2..=62), Some((62, &62)));
        assert_eq!(xa.find(&reader, 66..=usize::MAX), Some((4095, &4095)));
        // No index is in such a range.
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 63..=62;
        assert_eq!(xa.find(&reader, reversed), None);
        drop(reader);

        let mut guard = xa.lock();
        assert_eq!(guard.find(0..=usize::MAX), Some((0, &0)));
        for i in BORDERS {
            assert_eq!(guard.get(i), Some(&i));
            assert_eq!(guard.remove(i).map(|old| *old.borrow()), Some(i));
            assert!(guard.remove(i).is_none());
            assert_eq!(guard.get(i), None);
        }
        assert_eq!(guard.find(0..=usize::MAX), None);
        Ok(())
    }

    #[test]
    fn a_value_that_is_in_the_way_stays() -> Result {
        let xa = numbers::<Rcu>()?;
        for i in [0, 77] {
            xa.insert(i, number(1)?, GFP_KERNEL)?;
            let Err(error) = xa.insert(i, number(2)?, GFP_KERNEL) else {
                return Err(EINVAL);
            };
            assert_eq!((error.error, *error.value), (EBUSY, 2));
            let three = number(3)?;
            let mut guard = xa.lock();
            assert!(xa.try_lock().is_none());
            let Err(error) = guard.insert(i, three) else {
                return Err(EINVAL);
            };
            assert_eq!((error.error, *error.value), (EBUSY, 3));
            assert_eq!(guard.get(i), Some(&1));
            assert_eq!(
                guard.store(i, error.value)?.map(|old| *old.borrow()),
                Some(1)
            );
            assert_eq!(guard.get(i), Some(&3));
            match guard.entry(i) {
                Entry::Occupied(place) => assert_eq!(*place.get(), 3),
                Entry::Vacant(_) => return Err(EINVAL),
            }
        }
        assert!(xa.try_lock().is_some());
        Ok(())
    }

    // The kernel would warn about nodes in high memory, or of zeros.
    #[test]
    fn flags_may_be_those_for_the_value() -> Result {
        let (xa, flags) = (numbers::<Rcu>()?, GFP_KERNEL | __GFP_ZERO | __GFP_HIGHMEM);
        for i in 0..500 {
            xa.insert(i << 12, number(i)?, flags)?;
            drop(xa.reserve((i << 12) + 64, flags)?);
        }
        Ok(())
    }

    #[cfg(CONFIG_FAILSLAB)]
    #[test]
    fn the_value_comes_back_without_memory() -> Result {
        use crate::folio::tests::with_failure;

        let xa = numbers::<Locked>()?;
        xa.insert(0, number(0)?, GFP_KERNEL)?;
        for i in [64, 1 << 20, usize::MAX] {
            let (one, two) = (number(1)?, number(2)?);
            let error = with_failure(1, || xa.lock().insert(i, one).err());
            let error = error.ok_or(EINVAL)?;
            assert_eq!((error.error, *error.value), (ENOMEM, 1));
            let error = with_failure(1, || xa.lock().store(i, two).err());
            let error = error.ok_or(EINVAL)?;
            assert_eq!((error.error, *error.value), (ENOMEM, 2));
            assert_eq!(xa.lock().get(i), None);
            assert_eq!(xa.lock().find(1..=usize::MAX), None);
            // With memory, it works.
            xa.lock().insert(i, error.value)?;
            // A value can be replaced without memory, and a reservation filled.
            let three = number(3)?;
            let old = with_failure(1, || xa.lock().store(i, three))?;
            assert_eq!(old.map(|old| *old), Some(2));
            let place = xa.reserve(i - 1, GFP_KERNEL)?;
            let four = number(4)?;
            with_failure(1, || place.fill(four));
            assert_eq!(xa.remove(i - 1).map(|old| *old), Some(4));
            assert_eq!(xa.remove(i).map(|old| *old), Some(3));
        }
        Ok(())
    }

    #[test]
    fn a_reservation_is_no_value() -> Result {
        for i in [0, 5, 64, usize::MAX] {
            let xa = numbers::<Rcu>()?;
            let place = xa.reserve(i, GFP_KERNEL)?;
            assert_eq!(place.index(), i);
            assert_eq!(xa.reserve(i, GFP_KERNEL).err(), Some(EBUSY));
            let error = xa.insert(i, number(1)?, GFP_KERNEL).err();
            assert_eq!(error.map(|error| error.error), Some(EBUSY));
            assert!(xa.remove(i).is_none());
            let (one, two, four, five) = (number(1)?, number(2)?, number(4)?, number(5)?);
            let from = source()?;
            let mut from = from.lock();
            from.insert(0, five)?;
            let mut guard = xa.lock();
            assert_eq!(
                guard.insert(i, one).err().map(|error| error.error),
                Some(EBUSY)
            );
            assert_eq!(
                guard.store(i, two).err().map(|error| error.error),
                Some(EBUSY)
            );
            assert_eq!(guard.get(i), None);
            assert_eq!(guard.find(0..=usize::MAX), None);
            assert_eq!(guard.cursor(i).next(), None);
            if let (Entry::Occupied(value), Entry::Vacant(place)) = (from.entry(0), guard.entry(i))
            {
                assert_eq!(value.move_to(place), Err(EBUSY));
            }
            assert_eq!(from.get(0), Some(&5));
            match guard.entry(i) {
                Entry::Occupied(_) => return Err(EINVAL),
                Entry::Vacant(place) => {
                    let error = place.insert(four).err();
                    assert_eq!(error.map(|error| error.error), Some(EBUSY));
                }
            }
            drop(guard);
            drop(from);
            let reader = rcu::read_lock();
            assert_eq!(xa.load(&reader, i), None);
            assert_eq!(xa.find(&reader, 0..=usize::MAX), None);
            assert_eq!(xa.cursor(&reader, i).next(), None);
            drop(reader);

            place.fill(number(3)?);
            assert_eq!(xa.load(&rcu::read_lock(), i), Some(&3));
            drop(xa.remove(i));
            // What is given back can be reserved and used by others.
            drop(xa.reserve(i, GFP_KERNEL)?);
            xa.insert(i, number(4)?, GFP_KERNEL)?;
            drop(xa.remove(i));
            // What was forgotten stays reserved.
            mem::forget(xa.reserve(i, GFP_KERNEL)?);
            assert_eq!(xa.reserve(i, GFP_KERNEL).err(), Some(EBUSY));
        }
        Ok(())
    }

    #[test]
    fn a_value_moves_between_arrays() -> Result {
        let (from, to) = (source()?, numbers::<Rcu>()?);
        for i in [0, 5, 64, 4095, usize::MAX] {
            from.insert(i, number(i)?, GFP_KERNEL)?;
            // The node is there, so that the value can be inserted without waiting.
            to.insert(i ^ 2, number(i ^ 2)?, GFP_KERNEL)?;
            let (mut from, mut to) = (from.lock(), to.lock());
            let (Entry::Occupied(value), Entry::Vacant(place)) = (from.entry(i), to.entry(i))
            else {
                return Err(EINVAL);
            };
            assert_eq!(value.get(), &i);
            value.move_to(place)?;
            assert_eq!(from.get(i), None);
            assert_eq!(to.get(i), Some(&i));
        }
        Ok(())
    }

    #[test]
    fn an_occupied_entry_is_removed() -> Result {
        let xa = numbers::<Rcu>()?;
        for i in BORDERS {
            xa.insert(i, number(i)?, GFP_KERNEL)?;
        }
        for (done, i) in BORDERS.into_iter().enumerate() {
            let mut guard = xa.lock();
            let Entry::Occupied(place) = guard.entry(i) else {
                return Err(EINVAL);
            };
            assert_eq!(*place.remove().borrow(), i);
            let left = BORDERS.into_iter().filter(|i| guard.get(*i).is_some());
            assert_eq!(left.count(), BORDERS.len() - done - 1);
        }
        Ok(())
    }

    #[test]
    fn a_cursor_passes_reservations() -> Result {
        let xa = numbers::<Rcu>()?;
        for i in [3, 5, 7] {
            xa.insert(i, number(i)?, GFP_KERNEL)?;
        }
        let place = xa.reserve(6, GFP_KERNEL)?;
        let reader = rcu::read_lock();
        let mut cursor = xa.cursor(&reader, 3);
        let found = [3, 4, 5, 6, 7, 8].map(|_| cursor.next().copied());
        assert_eq!(found, [Some(3), None, Some(5), None, Some(7), None]);
        drop(reader);
        drop(place);
        Ok(())
    }

    #[test]
    fn a_cursor_walks_over_borders() -> Result {
        let xa = numbers::<Rcu>()?;
        // With one value, there is no node.
        xa.insert(0, number(0)?, GFP_KERNEL)?;
        let found = |start: usize, count: usize| -> Result<KVec<Option<usize>>> {
            let mut found = KVec::with_capacity(2 * count, GFP_KERNEL)?;
            let reader = rcu::read_lock();
            let mut cursor = xa.cursor(&reader, start);
            for _ in 0..count {
                found
                    .push_within_capacity(cursor.next().copied())
                    .map_err(|_| ENOMEM)?;
            }
            let guard = xa.lock();
            let mut cursor = guard.cursor(start);
            let same = found.iter().all(|entry| cursor.next().copied() == *entry);
            assert!(same);
            Ok(found)
        };
        assert_eq!(found(0, 3)?[..], [Some(0), None, None]);
        assert_eq!(found(63, 3)?[..], [None; 3]);
        for i in BORDERS {
            let _ = xa.insert(i, number(i)?, GFP_KERNEL);
        }
        for start in BORDERS {
            for (index, entry) in (start..=usize::MAX).zip(&found(start, 140)?) {
                let is_there = BORDERS.contains(&index);
                assert_eq!(*entry, is_there.then_some(index));
            }
        }
        Ok(())
    }

    #[test]
    fn runs_find_what_a_look_up_finds() -> Result {
        let xa = numbers::<Rcu>()?;
        for i in Iterator::chain(0..200, BORDERS).filter(|i| i % 7 != 3) {
            let _ = xa.insert(i, number(i)?, GFP_KERNEL);
        }
        let place = xa.reserve(73, GFP_KERNEL)?;
        let reader = rcu::read_lock();
        for start in BORDERS {
            for max in [1, 5, 1000] {
                let mut cursor = xa.cursor(&reader, start);
                let mut index = start;
                // Beyond the last index, no value need be found.
                while index - start < 140 && index < usize::MAX {
                    let run = cursor.run(max);
                    let len = run.len();
                    assert!((1..=max).contains(&len));
                    let found = run.map(|value| {
                        let same = value == xa.load(&reader, index);
                        index = index.saturating_add(1);
                        same
                    });
                    assert_eq!(found.filter(|same| *same).count(), len);
                }
            }
        }
        // A run and single steps take turns.
        let mut cursor = xa.cursor(&reader, 5);
        assert_eq!(cursor.next(), Some(&5));
        assert_eq!(cursor.run(3).flatten().sum::<usize>(), 6 + 7 + 8);
        assert_eq!(cursor.next(), Some(&9));
        drop(reader);
        drop(place);

        let empty = numbers::<Rcu>()?;
        let reader = rcu::read_lock();
        assert!(empty.cursor(&reader, 0).run(9).all(|value| value.is_none()));
        let mut cursor = empty.cursor(&reader, 1);
        // A slot of the run is replaced by a node.
        let mut late = empty.cursor(&reader, 0).run(1);
        for i in 0..100 {
            empty.insert(i, RcuBox::new(i, GFP_ATOMIC)?, GFP_ATOMIC)?;
        }
        assert_eq!(late.next(), Some(Some(&0)));
        assert_eq!(cursor.next(), Some(&1));
        Ok(())
    }

    #[test]
    fn a_cursor_survives_changes() -> Result {
        let xa = numbers::<Rcu>()?;
        for i in 0..200 {
            xa.insert(i, number(i)?, GFP_KERNEL)?;
        }
        let reader = rcu::read_lock();
        let mut cursor = xa.cursor(&reader, 62);
        let first = cursor.next();
        assert_eq!(first, Some(&62));
        // The node goes away from under the cursor, then all of them.
        let mut batch = RcuBatch::new();
        for i in 0..64 {
            batch.extend(xa.remove(i));
        }
        assert_eq!(cursor.next(), None);
        assert_eq!(cursor.next(), Some(&64));
        for i in 64..200 {
            batch.extend(xa.remove(i));
        }
        drop(batch);
        for _ in 65..300 {
            assert_eq!(cursor.next(), None);
        }
        // It is still the value that was found.
        assert_eq!(first, Some(&62));
        drop(reader);

        // The array shrinks to its first value, which a reader finds by trying again.
        xa.insert(0, number(0)?, GFP_KERNEL)?;
        xa.insert(1, number(1)?, GFP_KERNEL)?;
        let reader = rcu::read_lock();
        let mut cursor = xa.cursor(&reader, usize::MAX);
        assert_eq!(cursor.next(), None);
        let mut late = xa.cursor(&reader, 0);
        drop(xa.remove(1));
        assert_eq!(cursor.next(), Some(&0));
        assert_eq!((late.next(), late.next()), (Some(&0), None));
        Ok(())
    }

    #[test]
    fn removed_folios_are_put_after_a_grace_period() -> Result {
        let init = || XArray::<FolioBox<usize>>::new(c"tests", static_lock_class!());
        let xa = [
            KBox::pin_init(init(), GFP_KERNEL)?,
            KBox::pin_init(init(), GFP_KERNEL)?,
        ];
        let mut witnesses = KVec::new();
        for i in 0..100 {
            let folio = FolioBox::new(0, GFP_KERNEL, i)?;
            witnesses.push(Witness::new(&folio)?, GFP_KERNEL)?;
            xa[i % 2].insert(i, folio, GFP_KERNEL)?;
        }
        // Of two arrays, in one batch.
        let mut batch = RcuBatch::new();
        let reader = rcu::read_lock();
        let found = xa[0].load(&reader, 8).ok_or(EINVAL)?;
        for i in 0..50 {
            batch.extend(xa[i % 2].remove(i));
        }
        drop(batch);
        drop(xa[1].remove(51));
        assert!(!witnesses.iter().any(Witness::is_last));
        assert_eq!(*found.private(), 8);
        drop(reader);
        rcu::rcu_barrier();
        for (i, witness) in witnesses.iter().enumerate() {
            assert_eq!(witness.is_last(), i < 50 || i == 51);
        }
        // What was not removed is put with the array, at once.
        drop(xa);
        assert!(witnesses.iter().all(Witness::is_last));
        Ok(())
    }

    /// Counts how often values are dropped.
    struct Counted(Arc<Atomic<usize>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add(1, Relaxed);
        }
    }

    #[test]
    fn each_value_is_dropped_once() -> Result {
        let count = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let counted = || KBox::new(Counted(count.clone()), GFP_KERNEL);
        let xa = XArray::<KBox<Counted>, Locked>::new(c"tests", static_lock_class!());
        let xa = KBox::pin_init(xa, GFP_KERNEL)?;
        for i in 0..3000 {
            xa.insert(i * i, counted()?, GFP_KERNEL)?;
        }
        assert_eq!(count.load(Relaxed), 0);
        drop(xa.insert(4, counted()?, GFP_KERNEL));
        assert_eq!(count.load(Relaxed), 1);
        let one = counted()?;
        drop(xa.lock().store(9, one)?);
        assert_eq!(count.load(Relaxed), 2);
        drop(xa.lock().remove(16));
        assert_eq!(count.load(Relaxed), 3);
        mem::forget(xa.reserve(17, GFP_KERNEL)?);
        drop(xa);
        assert_eq!(count.load(Relaxed), 3002);
        Ok(())
    }

    // Such a box is not aligned, so that C might take it for an entry of its own.
    #[test]
    fn values_may_have_no_size() -> Result {
        let xa = XArray::<KBox<[u16; 0]>, Locked>::new(c"tests", static_lock_class!());
        let xa = KBox::pin_init(xa, GFP_KERNEL)?;
        for i in [5, 1, 70] {
            let (one, two) = (KBox::new([], GFP_KERNEL)?, KBox::new([], GFP_KERNEL)?);
            xa.lock().insert(i, one)?;
            assert!(xa.lock().get(i).is_some());
            assert!(xa.lock().store(i, two)?.is_some());
            assert!(xa.remove(i).is_some());
            xa.reserve(i, GFP_KERNEL)?.fill(KBox::new([], GFP_KERNEL)?);
            assert!(xa.lock().find(i..=i).is_some());
        }
        Ok(())
    }

    /// A timer that drops an array.
    #[pin_data]
    struct Dropper {
        #[pin]
        timer: HrTimer<Self>,
        #[pin]
        xa: SpinLockIrq<Option<Pin<KBox<Numbers>>>>,
        #[pin]
        done: Completion,
    }

    impl HrTimerCallback for Dropper {
        type Pointer<'a> = Arc<Self>;

        fn run(
            this: ArcBorrow<'_, Self>,
            _context: HrTimerCallbackContext<'_, Self>,
        ) -> HrTimerRestart {
            let xa = this.xa.lock().take();
            drop(xa);
            this.done.complete_all();
            HrTimerRestart::NoRestart
        }
    }

    impl_has_hr_timer! {
        impl HasHrTimer<Self> for Dropper {
            mode: RelativeMode<Monotonic>, field: self.timer
        }
    }

    // Lockdep complains if that takes the lock, which tasks take with interrupts enabled.
    #[test]
    fn an_interrupt_may_drop_an_array() -> Result {
        let xa = numbers::<Rcu>()?;
        for i in BORDERS {
            xa.insert(i, number(i)?, GFP_KERNEL)?;
        }
        let dropper = Arc::pin_init(
            pin_init!(Dropper {
                timer <- HrTimer::new(),
                xa <- new_spinlock_irq!(Some(xa)),
                done <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        let timer = dropper.clone().start(Delta::from_micros(100));
        dropper.done.wait_for_completion();
        drop(timer);
        assert!(dropper.xa.lock().is_none());
        Ok(())
    }

    /// An array that several tasks use, and what they tell the test.
    #[pin_data]
    struct Shared {
        #[pin]
        xa: Numbers,
        wrong: Atomic<usize>,
        found: Atomic<usize>,
        running: Atomic<usize>,
    }

    /// Returns a function that tells whether less than a second has passed.
    fn for_a_second() -> impl Fn() -> bool {
        let start = Instant::<Monotonic>::now();
        move || start.elapsed() < Delta::from_secs(1)
    }

    impl Shared {
        /// Changes the array for a second.
        fn change(&self, mut seed: u64) -> Result {
            let goes_on = for_a_second();
            while goes_on() {
                seed = seed
                    .wrapping_mul(0x5851_f42d_4c95_7f2d)
                    .wrapping_add(seed >> 7 | 1);
                let start = (seed >> 33 & 255) as usize;
                let mut batch = RcuBatch::new();
                match seed >> 20 & 3 {
                    0 => batch.extend((start..start + 40).filter_map(|i| self.xa.remove(i))),
                    1 => drop(self.xa.remove(start)),
                    2 => {
                        for i in start..start + 40 {
                            let _ = self.xa.insert(i, number(i)?, GFP_KERNEL);
                        }
                    }
                    _ => {
                        let (value, mut guard) = (number(start)?, self.xa.lock());
                        drop(guard.store(start, value));
                    }
                }
            }
            Ok(())
        }

        /// Reads the array for a second.
        fn read(&self) {
            let goes_on = for_a_second();
            while goes_on() {
                let reader = rcu::read_lock();
                let mut cursor = self.xa.cursor(&reader, 0);
                for i in 0..300 {
                    for value in [cursor.next(), self.xa.load(&reader, i)]
                        .into_iter()
                        .flatten()
                    {
                        self.found.add(1, Relaxed);
                        self.wrong.add((*value != i).into(), Relaxed);
                    }
                }
            }
        }
    }

    #[test]
    fn readers_find_what_writers_have_inserted() -> Result {
        let shared = Arc::pin_init(
            try_pin_init!(Shared {
                xa <- XArray::new(c"tests", static_lock_class!()),
                wrong: Atomic::new(0),
                found: Atomic::new(0),
                running: Atomic::new(4),
            }? Error),
            GFP_KERNEL,
        )?;
        // Without preemption, one after the other may have the CPU.
        for i in 0..300 {
            shared.xa.insert(i, number(i)?, GFP_KERNEL)?;
        }
        for i in 0..4 {
            let shared = shared.clone();
            workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
                if i < 2 {
                    shared.read();
                } else {
                    let done = shared.change(i as u64);
                    shared.wrong.add(done.is_err().into(), Relaxed);
                }
                shared.running.add(!0, Relaxed);
            })?;
        }
        while shared.running.load(Relaxed) != 0 {
            fsleep(Delta::from_millis(1));
        }
        assert_eq!(shared.wrong.load(Relaxed), 0);
        assert!(shared.found.load(Relaxed) > 1000);
        Ok(())
    }
}
