// SPDX-License-Identifier: GPL-2.0

//! Tests of requests that are executed without waiting.

#[macros::kunit_tests(rust_block_mq_passthrough_nowait)]
mod suite {
    use crate::{
        block::{
            limits::QueueLimits,
            mq::*,
            BlkStatus, //
        },
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            rcu,
            Arc, //
        },
        time::Delta, //
    };

    /// What the driver does with a request: the data of the request.
    const END: u32 = 0;
    const FAIL: u32 = 1;
    const REJECT: u32 = 2;
    const HANG: u32 = 3;
    const STOP: u32 = 4;
    const REQUEUE: u32 = 5;

    struct Driver;

    /// The data of the queue is the number of requests that have ended.
    #[vtable]
    impl Operations for Driver {
        type Context = NonBlocking;
        type TagSetData = ();
        type QueueData = Arc<Atomic<u32>>;
        type HwData = ();
        type RequestData = Atomic<u32>;
        type Timer = NoTimer;

        fn init_hw_queue(_: &Arc<Atomic<u32>>, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<Atomic<u32>> {
            Atomic::new(END)
        }

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let action = rq.data().load(Relaxed);
            if action == HANG {
                rq.start().leave_in_flight();
                return Ok(());
            }
            match action {
                STOP => {
                    rq.data().store(END, Relaxed);
                    rq.hw_queue().request_queue().stop();
                    return Err(rq.reject(BlkStatus::RESOURCE));
                }
                REQUEUE => {
                    rq.data().store(END, Relaxed);
                    rq.start().requeue_after(Delta::from_secs(3600));
                    return Ok(());
                }
                _ => rq.queue_data().add(1, Relaxed),
            }
            match action {
                REJECT => return Err(rq.reject(BlkStatus::OFFLINE)),
                FAIL => rq.start().end(Err(BlkStatus::MEDIUM)),
                _ => rq.start().end(Ok(())),
            }
            Ok(())
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            rq.queue_data().add(1, Relaxed);
            match rq.try_take() {
                Ok((rq, done)) => {
                    rq.end(Err(BlkStatus::TIMEOUT));
                    done
                }
                Err(rq) => rq.reset_timer(),
            }
        }
    }

    /// A queue with a single tag, so that a request has to be freed before the next.
    fn queue(ended: &Arc<Atomic<u32>>) -> Result<PassthroughQueue<Driver>> {
        let options = TagSetOptions {
            depth: 1,
            ..TagSetOptions::default()
        };
        let tags = TagSet::new(options, Ok(()))?;
        PassthroughQueue::new(tags, &QueueLimits::default(), None, Ok(ended.clone()))
    }

    fn request(queue: &PassthroughQueue<Driver>, action: u32) -> Result<Passthrough<'_, Driver>> {
        let rq = queue.request(PassthroughOp::In)?;
        rq.data().store(action, Relaxed);
        Ok(rq)
    }

    #[test]
    fn a_request_is_freed_when_it_has_ended() -> Result {
        let ended = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let queue = queue(&ended)?;
        for round in 0..30 {
            request(&queue, [END, FAIL, REJECT][round % 3])?.execute_nowait()?;
        }
        // Waits for the tag of the last.
        assert_eq!(request(&queue, END)?.execute()?.status(), Ok(()));
        assert_eq!(ended.load(Relaxed), 31);
        Ok(())
    }

    #[test]
    fn a_task_that_io_may_wait_for_can_do_it() -> Result {
        let ended = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let queue = queue(&ended)?;
        memalloc_noio(|| queue.try_request(PassthroughOp::In)?.execute_nowait())?;
        drop(queue);
        assert_eq!(ended.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn a_request_can_time_out() -> Result {
        let ended = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let queue = queue(&ended)?;
        let mut rq = request(&queue, HANG)?;
        rq.set_timeout(Delta::from_millis(20));
        rq.execute_nowait()?;
        assert_eq!(queue.try_request(PassthroughOp::In).err(), Some(EAGAIN));
        // Waits for the tag.
        drop(request(&queue, END)?);
        assert_eq!(ended.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn the_drop_of_the_queue_waits_for_a_request() -> Result {
        let ended = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let queue = queue(&ended)?;
        let mut rq = request(&queue, HANG)?;
        rq.set_timeout(Delta::from_millis(20));
        rq.execute_nowait()?;
        drop(queue);
        assert_eq!(ended.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn the_drop_of_the_queue_has_requests_dispatched() -> Result {
        for action in [STOP, REQUEUE] {
            let ended = Arc::new(Atomic::new(0), GFP_KERNEL)?;
            let queue = queue(&ended)?;
            request(&queue, action)?.execute_nowait()?;
            assert_eq!(ended.load(Relaxed), 0);
            drop(queue);
            assert_eq!(ended.load(Relaxed), 1);
        }
        Ok(())
    }

    #[test]
    fn a_request_that_cannot_be_executed_is_freed() -> Result {
        let ended = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let queue = queue(&ended)?;
        let buffer = KVVec::from_elem(0u8, 512, GFP_KERNEL)?;
        let with_buffer = request(&queue, END)?.with_buffer(buffer)?;
        assert_eq!(with_buffer.execute_nowait(), Err(EINVAL));
        let rq = request(&queue, END)?;
        let guard = rcu::read_lock();
        let result = rq.execute_nowait();
        drop(guard);
        assert_eq!(result, Err(EDEADLK));
        assert!(queue.try_request(PassthroughOp::In).is_ok());
        assert_eq!(ended.load(Relaxed), 0);
        Ok(())
    }
}
