// SPDX-License-Identifier: GPL-2.0

//! Test of a rejected request.

#[macros::kunit_tests(rust_block_mq_refused)]
mod suite {
    use super::super::{
        super::{
            Blocking,
            IoCompletionBatch,
            NoTimer,
            TagSet,
            TagSetOptions, //
        },
        *, //
    };
    use crate::{
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
    use core::ptr;

    /// A driver that keeps its first request, rejects the second, and ends all others immediately.
    /// It has one hardware queue, so its calls do not overlap.
    struct Driver;

    #[pin_data]
    struct State {
        calls: Atomic<u32>,
        #[pin]
        first: Mutex<Option<StartedRequest<Driver>>>,
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
            match state.calls.load(Relaxed) {
                0 => *state.first.lock() = Some(rq.start()),
                1 => {
                    state.calls.add(1, Relaxed);
                    return Err(rq.reject(BlkStatus::DEV_RESOURCE));
                }
                _ => rq.start().end(Ok(())),
            }
            state.calls.add(1, Relaxed);
            Ok(())
        }
    }

    #[test]
    fn a_refused_request_comes_again_after_another_has_ended_in_a_batch() -> Result {
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        let state = try_pin_init!(State {
            calls: Atomic::new(0),
            first <- new_mutex!(None),
        });
        let data = KBox::pin_init(tags.disk_data(None, state), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;
        // SAFETY: The queue is valid until it is destroyed.
        let alloc =
            || unsafe { bindings::blk_mq_alloc_request(queue, bindings::req_op_REQ_OP_DRV_IN, 0) };
        let requests = [from_err_ptr(alloc()), from_err_ptr(alloc())];
        for rq in requests.into_iter().flatten() {
            // SAFETY: The request is new, and C frees it when it has ended.
            unsafe { bindings::blk_execute_rq_nowait(rq, false) };
        }
        // A worker calls the driver, because the driver may sleep.
        let called = |times| {
            (0..2000).any(|_| {
                fsleep(Delta::from_millis(1));
                data.data().calls.load(Relaxed) >= times
            })
        };
        let refused = called(2);
        let mut batch = IoCompletionBatch::new();
        let first = data.data().first.lock().take();
        let batched = first.map(|rq| batch.add(rq).is_ok());
        drop(batch);
        let came_again = called(3);

        // After any failure, all requests must end before the queue is destroyed. Running the
        // queues dispatches a request that was lost.
        drop(data.data().first.lock().take());
        // SAFETY: The queue is valid.
        unsafe { bindings::blk_mq_run_hw_queues(queue, false) };
        // SAFETY: The test owns the queue, and does not use it again.
        tags.with_fixed_queues(|_| unsafe {
            bindings::blk_mq_destroy_queue(queue);
            bindings::blk_put_queue(queue);
        });
        assert!(requests.iter().all(|rq| rq.is_ok()));
        assert!(refused);
        assert_eq!(batched, Some(true));
        assert!(came_again);
        Ok(())
    }
}
