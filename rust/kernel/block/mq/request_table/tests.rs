// SPDX-License-Identifier: GPL-2.0

//! Tests of request tables with wrong identifiers, full entries, dropped halves, timeouts.

#[macros::kunit_tests(rust_block_mq_request_table)]
mod suite {
    use super::super::{
        super::{
            Blocking,
            IdleRequest,
            NoTimer,
            QueueResult,
            RequestList,
            TagSet,
            TagSetOptions,
            TimeoutAction, //
        },
        *, //
    };
    use crate::{
        bindings,
        error::from_err_ptr,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            new_mutex,
            Mutex, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
    };
    use core::ptr::NonNull;

    const REQUESTS: usize = 4;

    /// Tags are below the depth, for which an identifier has three bits.
    const DEPTH: u32 = 5;

    /// A driver that keeps its requests for the test.
    struct Driver;

    #[pin_data]
    struct State {
        #[pin]
        kept: Mutex<(usize, RequestList<Driver>)>,
        /// The table that requests are looked for in when they time out.
        #[pin]
        submitter: Mutex<Option<Submitter<Entry>>>,
        /// The number of timeouts of requests that were in the table, and that were not.
        found: Atomic<usize>,
        missing: Atomic<usize>,
        /// The last identifier of a request that was in the table.
        id: Atomic<u32>,
    }

    #[vtable]
    impl Operations for Driver {
        type Context = Blocking;
        type TagSetData = ();
        type QueueData = State;
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &State, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let state = rq.queue_data();
            let mut kept = state.kept.lock();
            kept.0 += 1;
            kept.1.push_back(rq.start());
            Ok(())
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            let state = rq.queue_data();
            if let Some(submitter) = &*state.submitter.lock() {
                match submitter.id_of(&rq) {
                    Some(id) => {
                        state.id.store(id.into(), Relaxed);
                        state.found.add(1, Relaxed);
                    }
                    None if submitter.table().contains(&rq) => state.id.store(u32::MAX, Relaxed),
                    None => state.missing.add(1, Relaxed),
                }
            }
            rq.reset_timer()
        }
    }

    type Entry = StartedRequest<Driver>;

    /// Calls `f` with a list of requests, and with the halves of a table of this depth. The
    /// requests that it leaves there end when it returns.
    fn with_requests<R>(
        depth: u32,
        f: impl FnOnce(
            &State,
            &mut RequestList<Driver>,
            Submitter<Entry>,
            &mut Completer<Entry>,
        ) -> Option<R>,
    ) -> Result<Option<R>> {
        let options = TagSetOptions {
            timeout: Some(Delta::from_millis(1)),
            ..TagSetOptions::default()
        };
        let tags = TagSet::<Driver>::new(options, Ok(()))?;
        let state = try_pin_init!(State {
            kept <- new_mutex!((0, RequestList::new())),
            submitter <- new_mutex!(None),
            found: Atomic::new(0),
            missing: Atomic::new(0),
            id: Atomic::new(0),
        });
        let data = KBox::pin_init(tags.disk_data(None, state), GFP_KERNEL)?;
        let state = data.data();
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        let (submitter, mut completer) = RequestTable::new(depth)?;
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;
        let mut sent = 0;
        for _ in 0..REQUESTS {
            // SAFETY: The queue is valid until it is destroyed.
            let rq =
                unsafe { bindings::blk_mq_alloc_request(queue, bindings::req_op_REQ_OP_DRV_IN, 0) };
            if let Ok(rq) = from_err_ptr(rq) {
                sent += 1;
                // SAFETY: The request is new, and C frees it when it has ended.
                unsafe { bindings::blk_execute_rq_nowait(rq, false) };
            }
        }
        // A worker queues the requests.
        while state.kept.lock().0 < sent {
            fsleep(Delta::from_millis(1));
        }
        let mut requests = state.kept.lock().1.take();
        let result = f(state, &mut requests, submitter, &mut completer);

        completer.drain(drop);
        drop(requests);
        // SAFETY: The test owns the queue, and does not use it again.
        tags.with_fixed_queues(|_| unsafe { bindings::blk_mq_destroy_queue(queue) });
        // SAFETY: As above.
        unsafe { bindings::blk_put_queue(queue) };
        if sent == REQUESTS {
            Ok(result)
        } else {
            Err(ENOMEM)
        }
    }

    /// Waits until `is_done` returns true, for at most ten seconds.
    fn wait(is_done: impl Fn() -> bool) -> bool {
        (0..10_000).any(|_| {
            fsleep(Delta::from_millis(1));
            is_done()
        })
    }

    fn insert<E: InFlight>(submitter: &mut Submitter<E>, tag: u32, entry: E) -> Option<u16> {
        let vacant = submitter.vacant(tag)?;
        let id = vacant.id();
        vacant.insert(entry);
        Some(id)
    }

    /// Returns the address of the request, which is used for comparisons only.
    fn address(rq: &Request<Driver>) -> usize {
        ptr::from_ref(rq).addr()
    }

    #[test]
    fn tables_have_a_limited_depth() -> Result {
        type Table = RequestTable<Entry>;

        for depth in [0, Table::MAX_DEPTH + 1, u32::MAX] {
            assert_eq!(Table::new(depth).err(), Some(EINVAL));
        }
        for depth in [1, 2, 3, 4096, Table::MAX_DEPTH] {
            let (mut submitter, mut completer) = Table::new(depth)?;
            assert!(submitter.vacant(depth).is_none());
            assert!(submitter.vacant(u32::MAX).is_none());
            for tag in [0, depth - 1] {
                let id = submitter.vacant(tag).map(|entry| u32::from(entry.id()));
                // It is not the tag itself.
                assert!(id.is_some_and(|id| id != tag));
                assert!(id.is_some_and(|id| id % depth.next_power_of_two() == tag));
            }
            assert!(completer.take(0).is_none());
            assert!(completer.take(u16::MAX).is_none());
        }
        Ok(())
    }

    /// Inserts and takes a request `count` times, checks that the identifiers differ, and returns
    /// the first one and the next.
    fn reuse(depth: u32, tag: u32, count: usize) -> Result<Option<(u16, u16)>> {
        with_requests(depth, |_, requests, mut submitter, completer| {
            let mut ids = [0; 64];
            let ids = &mut ids[..count];
            for i in 0..count {
                let rq = requests.pop_front()?;
                let expected = address(&rq);
                ids[i] = insert(&mut submitter, tag, rq)?;
                let is_full = submitter.vacant(tag).is_none();
                let is_stale = i == 0 || completer.take(ids[i - 1]).is_none();
                let rq = completer.take(ids[i])?;
                let is_right = address(&rq) == expected;
                let is_empty = completer.take(ids[i]).is_none();
                requests.push_back(rq);
                (is_full && is_stale && is_right && is_empty).then_some(())?;
            }
            let first = ids[0];
            ids.sort_unstable();
            let next = submitter.vacant(tag)?.id();
            let are_unique = ids.windows(2).all(|pair| pair[0] < pair[1]);
            are_unique.then_some((first, next))
        })
    }

    #[test]
    fn a_request_is_taken_by_its_identifier_once() -> Result {
        for tag in 0..DEPTH {
            let (first, next) = reuse(DEPTH, tag, 64)?.ok_or(EIO)?;
            assert_ne!(first, next);
        }
        // The generation wraps around.
        let max = RequestTable::<Entry>::MAX_DEPTH;
        for tag in [0, max - 1] {
            let (first, next) = reuse(max, tag, 4)?.ok_or(EIO)?;
            assert_eq!(first, next);
        }
        Ok(())
    }

    #[test]
    fn other_identifiers_find_nothing() -> Result {
        let result = with_requests(DEPTH, |_, requests, mut submitter, completer| {
            let mut ids = [0; REQUESTS];
            for (tag, id) in (0..).zip(&mut ids) {
                *id = insert(&mut submitter, tag, requests.pop_front()?)?;
            }
            let mut wrong = 0;
            for id in (0..=u16::MAX).filter(|id| !ids.contains(id)) {
                wrong += completer.take(id).is_some() as usize;
            }
            let count = submitter.table().count();
            let (mut first, mut second) = (0, 0);
            completer.drain(|_| first += 1);
            completer.drain(|_| second += 1);
            Some((wrong, count, first, second, completer.table().count()))
        })?;
        assert_eq!(result, Some((0, REQUESTS, REQUESTS, 0, 0)));
        Ok(())
    }

    #[test]
    fn a_completer_without_a_submitter_takes_all() -> Result {
        let result = with_requests(DEPTH, |_, requests, mut submitter, completer| {
            let id = insert(&mut submitter, 0, requests.pop_front()?)?;
            insert(&mut submitter, 1, requests.pop_front()?)?;
            drop(submitter);
            completer.take(id)?.end(Ok(()));
            let mut drained = 0;
            completer.drain(|_| drained += 1);
            Some(drained)
        })?;
        assert_eq!(result, Some(1));
        Ok(())
    }

    /// An entry that does not own its request, and counts how often it is dropped.
    struct Borrowed(NonNull<Request<Driver>>);

    static DROPPED: Atomic<i32> = Atomic::new(0);

    // SAFETY: A request may be accessed by any thread.
    unsafe impl Send for Borrowed {}

    impl InFlight for Borrowed {
        type Driver = Driver;

        fn request(&self) -> &Request<Driver> {
            // SAFETY: The test owns the request until it has dropped or leaked the entry.
            unsafe { self.0.as_ref() }
        }
    }

    impl Drop for Borrowed {
        fn drop(&mut self) {
            DROPPED.add(1, Relaxed);
        }
    }

    #[test]
    fn requests_in_a_table_that_is_dropped_are_leaked() -> Result {
        let (mut submitter, mut completer) = RequestTable::new(DEPTH)?;
        let result = with_requests(DEPTH, |_, requests, _, _| {
            let rq = requests.pop_front()?;
            let entry = || Borrowed(NonNull::from(&*rq));
            let before = DROPPED.load(Relaxed);
            let dropped = || DROPPED.load(Relaxed) - before;
            // Entries may lie: this is one request, with several tags.
            let id = insert(&mut submitter, 0, entry())?;
            insert(&mut submitter, 1, entry())?;
            drop(completer.take(id)?);
            let by_take = dropped();
            drop(completer);
            let by_completer = dropped();
            insert(&mut submitter, 0, entry())?;
            insert(&mut submitter, 1, entry()).is_none().then_some(())?;
            let by_insert = dropped();
            drop(submitter);
            let by_table = dropped();
            rq.end(Ok(()));
            Some([by_take, by_completer, by_insert, by_table])
        })?;
        // An entry that could not be inserted was dropped.
        assert_eq!(result, Some([1, 1, 2, 2]));
        Ok(())
    }

    #[test]
    fn a_request_that_times_out_is_found_while_it_is_in_the_table() -> Result {
        let depth = TagSetOptions::default().depth;
        let result = with_requests(depth, |state, requests, mut submitter, completer| {
            let rq = requests.pop_front()?;
            let tag = rq.tag();
            // No other request times out.
            drop(requests.take());
            let id = insert(&mut submitter, tag, rq)?;
            *state.submitter.lock() = Some(submitter);
            let is_found = wait(|| state.found.load(Relaxed) > 0);
            let has_id = state.id.load(Relaxed) == u32::from(id);
            let is_never_missing = state.missing.load(Relaxed) == 0;
            let rq = completer.take(id)?;
            let is_missing = wait(|| state.missing.load(Relaxed) > 0);
            // In the entry of another tag, it is not found.
            let mut submitter = state.submitter.lock();
            let id = insert((*submitter).as_mut()?, (tag + 1) % depth, rq)?;
            drop(submitter);
            state.found.store(0, Relaxed);
            state.missing.store(0, Relaxed);
            let is_elsewhere = wait(|| state.missing.load(Relaxed) > 1);
            let is_never_found = state.found.load(Relaxed) == 0;
            completer.take(id)?.end(Ok(()));
            Some([
                is_found,
                has_id,
                is_never_missing,
                is_missing,
                is_elsewhere,
                is_never_found,
            ])
        })?;
        assert_eq!(result, Some([true; 6]));
        Ok(())
    }
}
