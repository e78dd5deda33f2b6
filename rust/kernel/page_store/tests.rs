// SPDX-License-Identifier: GPL-2.0

//! Tests of page stores against plain memory.

#[macros::kunit_tests(rust_page_store)]
mod suite {
    use super::super::{
        range::{
            block_pages,
            Chunk, //
        },
        sectors::GRANULE,
        PageStore,
        WriteCache, //
    };
    use crate::{
        block::bio::fake_request::FakeRequest,
        impl_has_hr_timer,
        interrupt::local_interrupt_disable,
        new_spinlock, new_spinlock_irq,
        page::PAGE_SIZE,
        prelude::*,
        sync::{
            rcu,
            Arc,
            ArcBorrow,
            Completion,
            SpinLockIrq, //
        },
        time::{
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

    /// The part of a store that the tests use.
    const LEN: usize = 40 * PAGE_SIZE;

    /// A sequence of numbers that look like chance and are the same each time.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % end
        }

        /// A range of bytes, long or short.
        fn range(&mut self) -> (usize, usize) {
            let at = self.below(LEN);
            let most = [600, 2 * PAGE_SIZE, LEN][self.below(3)];
            (at, self.below(most.min(LEN - at)) + 1)
        }
    }

    /// What the whole store should hold, in plain memory.
    fn check(store: &PageStore, model: &[u8], buffer: &mut [u8]) {
        assert_eq!(store.read_bytes(0, buffer), Ok(()));
        assert!(buffer == model);
    }

    fn zeros(len: usize) -> Result<KVVec<u8>> {
        Ok(KVVec::from_elem(0, len, GFP_KERNEL)?)
    }

    #[test]
    fn buffers_match_a_model() -> Result {
        for block_size in [512, 4096, 16384, 65536] {
            let store = KBox::pin_init(PageStore::new(block_size), GFP_KERNEL)?;
            let (mut model, mut buffer) = (zeros(LEN)?, zeros(LEN)?);
            let mut chance = Chance(block_size.into());
            for round in 0..200u8 {
                let (at, len) = chance.range();
                if chance.below(4) == 0 {
                    model[at..][..len].fill(0);
                    store.remove_bytes(at as u64, len as u64)?;
                } else {
                    model[at..][..len].fill(round + 1);
                    store.write_bytes(at as u64, &model[at..][..len])?;
                }
                check(&store, &model, &mut buffer);
            }
            store.remove_bytes(0, u64::MAX - 1)?;
            check(&store, &zeros(LEN)?, &mut buffer);
        }
        Ok(())
    }

    #[test]
    fn requests_match_a_model() -> Result {
        let store = KBox::pin_init(PageStore::new(16384), GFP_KERNEL)?;
        let mut fake = FakeRequest::new(&[
            (&[(77, 9 * PAGE_SIZE), (0, 1)], 1000),
            (&[(PAGE_SIZE - 3, 5), (12, 0), (512, 3584)], 0),
        ])?;
        let len = fake.len();
        let mut bytes = zeros(len)?;
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = (i % 251) as u8;
        }
        fake.set(&bytes);
        for at in [0, 1, 4095, 123_456] {
            let mut data = fake.to_disk();
            // In two parts, as when only the start of a request succeeds.
            store.write_segments(true, at, &mut data, 1234)?;
            store.write_segments(true, at + 1234, &mut data, len as u32 - 1234)?;
            assert_eq!(data.remaining(), 0);
            assert_eq!(store.write_segments(true, at, &mut data, 1), Err(EINVAL));

            let mut copy = zeros(len)?;
            store.read_bytes(at, &mut copy)?;
            assert!(copy[..] == bytes[..]);

            let mut other = FakeRequest::new(&[(&[(5, 3000)], 0), (&[(1, len)], 3000)])?;
            store.read_segments(at, &mut other.from_disk(), len as u32)?;
            assert!(other.bytes()?[..] == bytes[..]);
            store.remove_bytes(0, 1 << 30)?;
        }
        // Unwritten: all zeros, whatever the memory held.
        store.read_segments(1 << 40, &mut fake.from_disk(), len as u32)?;
        assert!(fake.bytes()?.iter().all(|byte| *byte == 0));
        Ok(())
    }

    #[test]
    fn requests_within_a_page_match_a_model() -> Result {
        let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
        let (mut model, mut buffer) = (zeros(LEN)?, zeros(LEN)?);
        let mut fake = FakeRequest::new(&[
            (&[(77, 2 * PAGE_SIZE), (0, 1)], 0),
            (&[(PAGE_SIZE - 3, 5), (512, 3584), (9, PAGE_SIZE)], 0),
        ])?;
        let (len, mut chance) = (fake.len(), Chance(1));
        for _ in 0..40 {
            // Where each part of the memory goes to, or comes from: its place, its length. Some
            // that are short go a little beyond where a segment ends.
            let (mut parts, mut done) = (KVec::new(), 0);
            let most = [16, 600, PAGE_SIZE][chance.below(3)];
            while done < len {
                let at = chance.below(LEN);
                let room = (PAGE_SIZE - at % PAGE_SIZE).min(len - done);
                let part = 1 + chance.below(room.min(most));
                parts.push((at, part), GFP_KERNEL)?;
                done += part;
            }

            let mut bytes = zeros(len)?;
            bytes.fill_with(|| chance.below(256) as u8);
            fake.set(&bytes);
            let (mut data, mut done) = (fake.to_disk(), 0);
            for &(at, part) in &parts {
                store.write_segments(true, at as u64, &mut data, part as u32)?;
                model[at..][..part].copy_from_slice(&bytes[done..][..part]);
                done += part;
            }
            check(&store, &model, &mut buffer);

            let (mut data, mut done) = (fake.from_disk(), 0);
            for &(at, part) in parts.iter().rev() {
                store.read_segments(at as u64, &mut data, part as u32)?;
                bytes[done..][..part].copy_from_slice(&model[at..][..part]);
                done += part;
            }
            assert!(fake.bytes()?[..] == bytes[..]);
            store.remove_bytes(chance.below(LEN) as u64, LEN as u64 / 2)?;
            store.read_bytes(0, &mut model)?;
        }
        Ok(())
    }

    #[test]
    fn pages_go_with_their_last_sector() -> Result {
        for block_size in [512, 65536] {
            let store = KBox::pin_init(PageStore::new(block_size), GFP_KERNEL)?;
            let (page, sector) = (PAGE_SIZE as u64, GRANULE as u64);
            store.write_bytes(3 * page, &zeros(2 * PAGE_SIZE)?)?;
            assert_eq!(store.pages(), 2);
            // All sectors of the one but the last, in two calls that overlap.
            store.remove_bytes(3 * page + 1, page / 2)?;
            store.remove_bytes(3 * page, page - sector)?;
            assert_eq!(store.pages(), 2);
            // The last one is not covered yet.
            store.remove_bytes(4 * page - sector, sector - 1)?;
            assert_eq!(store.pages(), 2);
            // All of the one that is left, with half of the next.
            store.remove_bytes(4 * page - sector, sector + page / 2)?;
            assert_eq!(store.pages(), 1);
            // What was written once more has to be removed once more.
            store.write_bytes(4 * page + 7, b"x")?;
            store.remove_bytes(4 * page + page / 2, page / 2)?;
            assert_eq!(store.pages(), 1);
            store.remove_bytes(4 * page, sector)?;
            assert_eq!(store.pages(), 0);
            // Far apart, in one call.
            for i in 0..50 {
                store.write_bytes(i << (i / 2 + 12), b"far")?;
            }
            assert_eq!(store.pages(), 50);
            store.remove_bytes(0, u64::MAX - 1)?;
            assert_eq!(store.pages(), 0);
        }
        Ok(())
    }

    #[test]
    fn pages_that_hold_nothing_can_go() -> Result {
        let store = KBox::pin_init(PageStore::new(65536), GFP_KERNEL)?;
        let block = Chunk::of_block(0, block_pages(65536));
        store.add_pages(block, true)?;
        assert_eq!(store.pages(), block_pages(65536));
        store.remove_unused(block);
        assert_eq!(store.pages(), 0);
        store.write_bytes(PAGE_SIZE as u64, b"x")?;
        store.remove_unused(block);
        assert_eq!(store.pages(), 1);
        Ok(())
    }

    #[test]
    fn block_size_changes_keep_the_contents() -> Result {
        let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
        let (mut model, mut buffer) = (zeros(LEN)?, zeros(LEN)?);
        let mut chance = Chance(1);
        for block_size in [4096, 65536, 512, 8192, 32768, 1024, 65536] {
            for _ in 0..4 {
                let at = chance.below(LEN - 700);
                model[at..][..700].fill(chance.below(255) as u8 + 1);
                store.write_bytes(at as u64, &model[at..][..700])?;
            }
            store.set_block_size(block_size);
            check(&store, &model, &mut buffer);
        }
        Ok(())
    }

    /// Does everything there is to do with a store, and tells what came of it.
    fn use_all(store: &PageStore, fake: &mut FakeRequest) -> [Result; 6] {
        let (len, mut bytes) = (fake.len() as u32, [0; 3]);
        [
            store.write_bytes(0, &[1; 3]),
            store.read_bytes(0, &mut bytes),
            store.write_segments(true, 1 << 30, &mut fake.to_disk(), len),
            store.read_segments(1 << 30, &mut fake.from_disk(), len),
            store.remove_bytes(0, 3),
            store.remove_bytes(0, u64::MAX - 1),
        ]
    }

    #[test]
    fn nothing_is_done_with_interrupts_disabled() -> Result {
        let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
        let mut fake = FakeRequest::new(&[(&[(0, 2 * PAGE_SIZE)], 0)])?;
        let off = local_interrupt_disable();
        let results = use_all(&store, &mut fake);
        drop(off);
        assert_eq!(results, [Err(EBUSY); 6]);
        assert_eq!(store.pages(), 0);
        assert_eq!(use_all(&store, &mut fake), [Ok(()); 6]);
        Ok(())
    }

    #[test]
    fn nothing_is_cached_with_interrupts_disabled() -> Result {
        const BLOCK: u32 = WriteCache::SMALLEST_BLOCK;

        let store = Arc::pin_init(PageStore::new(BLOCK), GFP_KERNEL)?;
        let cache = KBox::pin_init(WriteCache::new(store, 1 << 20, BLOCK), GFP_KERNEL)?;
        let mut fake = FakeRequest::new(&[(&[(0, BLOCK as usize)], 0)])?;
        let off = local_interrupt_disable();
        let results = [
            cache.write_segments(true, false, 0, &mut fake.to_disk(), BLOCK),
            cache.write_segments(true, true, 0, &mut fake.to_disk(), BLOCK),
            cache.read_segments(0, &mut fake.from_disk(), BLOCK),
        ];
        drop(off);
        assert_eq!(results, [Err(EBUSY); 3]);
        assert_eq!(cache.pages(), 0);
        Ok(())
    }

    // That nothing sleeps is seen in the log.
    #[test]
    fn nothing_sleeps_where_that_is_not_allowed() -> Result {
        let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
        let lock = KBox::pin_init(new_spinlock!(()), GFP_KERNEL)?;
        let mut fake = FakeRequest::new(&[(&[(0, 2 * PAGE_SIZE)], 0)])?;
        let guard = lock.lock();
        let locked = use_all(&store, &mut fake);
        drop(guard);
        let section = rcu::read_lock();
        let read = use_all(&store, &mut fake);
        drop(section);
        assert_eq!((locked, read), ([Ok(()); 6], [Ok(()); 6]));
        Ok(())
    }

    /// A timer that takes a lock.
    #[pin_data]
    struct Handler {
        #[pin]
        timer: HrTimer<Self>,
        #[pin]
        lock: SpinLockIrq<()>,
        #[pin]
        done: Completion,
    }

    impl HrTimerCallback for Handler {
        type Pointer<'a> = Arc<Self>;

        fn run(
            this: ArcBorrow<'_, Self>,
            _context: HrTimerCallbackContext<'_, Self>,
        ) -> HrTimerRestart {
            drop(this.lock.lock());
            this.done.complete_all();
            HrTimerRestart::NoRestart
        }
    }

    impl_has_hr_timer! {
        impl HasHrTimer<Self> for Handler {
            mode: RelativeMode<Monotonic>, field: self.timer
        }
    }

    // If a leaf were waited for under the lock, lockdep would say so.
    #[test]
    fn no_leaf_is_waited_for_under_the_lock_of_a_handler() -> Result {
        let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
        let mut fake = FakeRequest::new(&[(&[(0, 2 * PAGE_SIZE)], 0)])?;
        let handler = Arc::pin_init(
            pin_init!(Handler {
                timer <- HrTimer::new(),
                lock <- new_spinlock_irq!(()),
                done <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        let timer = handler.clone().start(Delta::from_micros(100));
        handler.done.wait_for_completion();
        drop(timer);
        assert_eq!(use_all(&store, &mut fake), [Ok(()); 6]);
        let guard = handler.lock.lock();
        let results = use_all(&store, &mut fake);
        drop(guard);
        assert_eq!(results, [Err(EBUSY); 6]);
        Ok(())
    }

    #[test]
    fn ranges_end() -> Result {
        let store = KBox::pin_init(PageStore::new(512), GFP_KERNEL)?;
        let end = u64::MAX - 4;
        assert_eq!(store.write_bytes(end, b"abcd"), Ok(()));
        assert_eq!(store.write_bytes(end, b"abcde"), Err(EINVAL));
        let mut byte = [0];
        store.read_bytes(u64::MAX - 1, &mut byte)?;
        assert_eq!(byte, *b"d");
        assert_eq!(store.remove_bytes(end, 5), Err(EINVAL));
        assert_eq!(store.remove_bytes(end, 4), Ok(()));
        store.read_bytes(u64::MAX - 1, &mut byte)?;
        assert_eq!(byte, [0]);
        Ok(())
    }
}
