// SPDX-License-Identifier: GPL-2.0

//! Test of requests that time out in a list.

#[macros::kunit_tests(rust_block_mq_pending)]
mod suite {
    use super::super::{
        super::{
            Blocking,
            IdleRequest,
            NoTimer,
            QueueResult,
            TagSet,
            TagSetOptions, //
        },
        *, //
    };
    use crate::{
        block::BlkStatus,
        error::from_err_ptr,
        prelude::*,
        sync::{
            new_mutex,
            Mutex, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
    };

    const REQUESTS: usize = 8;

    /// A driver that keeps each request in one of two lists until it times out.
    struct Driver;

    #[pin_data]
    struct State {
        #[pin]
        lists: Mutex<[PendingList<Driver>; 2]>,
        kept: Atomic<usize>,
        /// The number of requests found in the list that they were added to, and in the other list.
        right: Atomic<usize>,
        wrong: Atomic<usize>,
    }

    #[vtable]
    impl Operations for Driver {
        type Context = Blocking;
        type TagSetData = ();
        type QueueData = State;
        type HwData = ();
        type RequestData = Atomic<usize>;
        type Timer = NoTimer;

        fn init_hw_queue(_: &State, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<Atomic<usize>> {
            Atomic::new(0)
        }

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let state = rq.queue_data();
            let which = state.kept.fetch_add(1, Relaxed) % 2;
            let rq = rq.start();
            rq.data().store(which, Relaxed);
            state.lists.lock()[which].push_back(rq);
            Ok(())
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            let state = rq.hw_queue().queue_data();
            let which = rq.data().load(Relaxed);
            let mut lists = state.lists.lock();
            let (rq, done) = match lists[1 - which].remove(rq) {
                Ok(taken) => {
                    state.wrong.add(1, Relaxed);
                    taken
                }
                Err(rq) => match lists[which].remove(rq) {
                    Ok(taken) => {
                        state.right.add(1, Relaxed);
                        taken
                    }
                    Err(rq) => return rq.reset_timer(),
                },
            };
            drop(lists);
            rq.end(Err(BlkStatus::TIMEOUT));
            done
        }
    }

    #[test]
    fn a_request_is_removed_from_its_own_list_only() -> Result {
        let options = TagSetOptions {
            timeout: Some(Delta::from_millis(1)),
            ..TagSetOptions::default()
        };
        let tags = TagSet::<Driver>::new(options, Ok(()))?;
        let state = try_pin_init!(State {
            lists <- new_mutex!([PendingList::new(), PendingList::new()]),
            kept: Atomic::new(0),
            right: Atomic::new(0),
            wrong: Atomic::new(0),
        });
        let data = KBox::pin_init(tags.disk_data(None, state), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;
        let state = data.data();
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
        let ended = || state.right.load(Relaxed) + state.wrong.load(Relaxed);
        // A worker queues the requests. Then some are removed from their list without a timeout.
        while state.kept.load(Relaxed) < sent {
            fsleep(Delta::from_millis(1));
        }
        let (mut taken, popped) = {
            let mut lists = state.lists.lock();
            let mut taken = lists[0].take();
            let popped = lists[1].pop_front();
            // The first request is added again to the list that it has left.
            if let Some(rq) = taken.pop_front() {
                lists[0].push_back(rq);
            }
            (taken, popped)
        };
        let mut left = 0;
        while let Some(rq) = taken.pop_front() {
            left += 1;
            rq.end(Ok(()));
        }
        left += popped.map(|rq| rq.end(Ok(()))).is_some() as usize;
        let all_ended = (0..10_000).any(|_| {
            fsleep(Delta::from_millis(1));
            ended() + left == sent
        });

        drop(state.lists.lock()[0].take());
        drop(state.lists.lock()[1].take());
        // SAFETY: The test owns the queue, and does not use it again.
        tags.with_fixed_queues(|_| unsafe { bindings::blk_mq_destroy_queue(queue) });
        // SAFETY: As above.
        unsafe { bindings::blk_put_queue(queue) };
        assert_eq!(sent, REQUESTS);
        assert!(all_ended);
        assert_eq!(state.wrong.load(Relaxed), 0);
        Ok(())
    }
}
