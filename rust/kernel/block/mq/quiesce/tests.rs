// SPDX-License-Identifier: GPL-2.0

//! Tests of dispatch that is put off.

#[macros::kunit_tests(rust_block_mq_quiesce)]
mod suite {
    use super::super::{
        super::{
            memalloc_noio,
            Blocking,
            DiskData,
            IdleRequest,
            NoTimer,
            QueueCounts,
            QueueResult,
            TagSetOptions, //
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
            rcu, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
    };
    use core::ptr;

    /// A driver that requeues its first requests with the delays that it has, and ends all others.
    struct Driver;

    struct State {
        calls: Atomic<u32>,
        /// Milliseconds.
        delays: [i64; 2],
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
            let call = state.calls.fetch_add(1, Relaxed) as usize;
            match state.delays.get(call) {
                Some(&delay) if delay > 0 => rq.start().requeue_after(Delta::from_millis(delay)),
                _ => rq.start().end(Ok(())),
            }
            Ok(())
        }
    }

    /// A queue without a disk.
    struct Queue {
        raw: *mut bindings::request_queue,
        data: Pin<KBox<DiskData<Driver>>>,
        tags: Arc<TagSet<Driver>>,
    }

    impl Queue {
        fn new(tags: &Arc<TagSet<Driver>>, delays: [i64; 2]) -> Result<Self> {
            let state = State {
                calls: Atomic::new(0),
                delays,
            };
            let data = KBox::pin_init(tags.disk_data(None, Ok(state)), GFP_KERNEL)?;
            let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
            // SAFETY: The tag set and the data outlive the queue, which `drop` destroys.
            let raw = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
                bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
            }))?;
            Ok(Self {
                raw,
                data,
                tags: tags.clone(),
            })
        }

        /// Submits a request, for which it does not wait.
        fn submit(&self) -> Result {
            // SAFETY: The queue is valid.
            let rq = from_err_ptr(unsafe {
                bindings::blk_mq_alloc_request(self.raw, bindings::req_op_REQ_OP_DRV_IN, 0)
            })?;
            // SAFETY: The request is new, and C frees it when it has ended.
            unsafe { bindings::blk_execute_rq_nowait(rq, false) };
            Ok(())
        }

        fn calls(&self) -> u32 {
            self.data.data().calls.load(Relaxed)
        }

        /// Returns whether the driver is called so often within some seconds.
        fn is_called(&self, times: u32) -> bool {
            (0..3000).any(|_| {
                fsleep(Delta::from_millis(1));
                self.calls() >= times
            })
        }

        fn c_depth(&self) -> c_int {
            // SAFETY: The queue is valid.
            unsafe { (*self.raw).quiesce_depth }
        }
    }

    impl Drop for Queue {
        fn drop(&mut self) {
            // SAFETY: The test owns the queue, and does not use it again.
            self.tags.with_fixed_queues(|_| unsafe {
                bindings::blk_mq_destroy_queue(self.raw);
                bindings::blk_put_queue(self.raw);
            });
        }
    }

    fn tags() -> Result<Arc<TagSet<Driver>>> {
        TagSet::new(TagSetOptions::default(), Ok(()))
    }

    #[test]
    fn nothing_is_dispatched_until_the_last_guard_is_dropped() -> Result {
        let tags = tags()?;
        let queue = Queue::new(&tags, [0; 2])?;
        let (first, second) = (tags.quiesce()?, tags.quiesce()?);
        queue.submit()?;
        fsleep(Delta::from_millis(50));
        let calls_with_two = queue.calls();
        drop(first);
        fsleep(Delta::from_millis(50));
        let calls_with_one = queue.calls();
        // The requests that wait would not end.
        let change = tags.set_queue_counts(QueueCounts::default());
        {
            // Where nothing may sleep.
            let _section = rcu::read_lock();
            drop(second);
        }
        let is_called = queue.is_called(1);
        assert_eq!((calls_with_two, calls_with_one), (0, 0));
        assert_eq!(change, Err(EDEADLK));
        assert!(is_called);
        assert_eq!(queue.c_depth(), 0);
        tags.set_queue_counts(QueueCounts::default())
    }

    #[test]
    fn a_queue_that_joins_or_leaves_is_quiesced_as_often_as_the_others() -> Result {
        let tags = tags()?;
        let early = Queue::new(&tags, [0; 2])?;
        let (first, second) = (tags.quiesce()?, tags.quiesce()?);
        let late = Queue::new(&tags, [0; 2])?;
        let depths = (early.c_depth(), late.c_depth());
        // Before any request waits, because this may freeze the queue that remains.
        drop(early);
        late.submit()?;
        drop(first);
        fsleep(Delta::from_millis(20));
        let (depth, calls) = (late.c_depth(), late.calls());
        drop(second);
        let is_called = late.is_called(1);
        assert_eq!(depths, (2, 2));
        assert_eq!((depth, calls), (1, 0));
        assert!(is_called);
        assert_eq!(late.c_depth(), 0);
        Ok(())
    }

    #[test]
    fn a_tag_set_is_quiesced_only_where_the_caller_can_wait() -> Result {
        let tags = tags()?;
        // As in a callback that may sleep.
        assert_eq!(memalloc_noio(|| tags.quiesce()).err(), Some(EDEADLK));
        if cfg!(CONFIG_PREEMPT_COUNT) {
            let _section = rcu::read_lock();
            assert_eq!(tags.quiesce().err(), Some(EDEADLK));
        }
        drop(tags.quiesce()?);
        Ok(())
    }

    #[test]
    fn a_guard_keeps_the_tag_set() -> Result {
        let quiesced = tags()?.quiesce()?;
        assert_eq!(quiesced.tag_set().depth(), TagSetOptions::default().depth);
        Ok(())
    }

    #[test]
    fn a_request_that_is_requeued_waits_for_its_delay() -> Result {
        let queue = Queue::new(&tags()?, [300, 0])?;
        queue.submit()?;
        let is_called = queue.is_called(1);
        fsleep(Delta::from_millis(50));
        let calls = queue.calls();
        let is_called_again = queue.is_called(2);
        assert!(is_called);
        assert_eq!(calls, 1);
        assert!(is_called_again);
        Ok(())
    }

    #[test]
    fn a_long_delay_does_not_put_off_other_requests() -> Result {
        let queue = Queue::new(&tags()?, [200, 3_600_000])?;
        queue.submit()?;
        let first = queue.is_called(1);
        queue.submit()?;
        let second = queue.is_called(2);
        let both_again = queue.is_called(4);
        // After a failure, the queue could not be destroyed for an hour.
        //
        // SAFETY: The queue is valid.
        unsafe { bindings::blk_mq_kick_requeue_list(queue.raw) };
        assert!(first && second && both_again);
        Ok(())
    }
}
