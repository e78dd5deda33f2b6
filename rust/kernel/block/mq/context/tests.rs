// SPDX-License-Identifier: GPL-2.0

//! Tests of the callbacks that run in a NOIO scope.

#[macros::kunit_tests(rust_block_mq_context)]
mod suite {
    use super::super::{
        super::{
            vtable::Vtable,
            CompletingRequest,
            HwQueue,
            IdleRequest,
            IoCompletionBatch,
            NoTimer,
            Operations,
            QueueResult,
            TagSet,
            TagSetOptions,
            TimedOutRequest,
            TimeoutAction, //
        },
        NonBlocking,
        *, //
    };
    use crate::{
        block::BlkStatus,
        error::from_err_ptr,
        sync::{
            atomic::{
                self,
                Relaxed, //
            },
            Arc, //
        },
        time::Delta, //
    };
    use core::ptr;

    #[derive(Clone, Copy)]
    enum Callback {
        InitRequest,
        InitHwQueue,
        QueueRq,
        CommitRqs,
        Poll,
        Timeout,
        DropRequest,
    }

    const CALLBACKS: usize = 7;

    /// The number of calls of each callback in a NOIO scope, then outside.
    #[derive(Default)]
    struct Seen([[Count; 2]; CALLBACKS]);

    struct Count(atomic::Atomic<u32>);

    impl Default for Count {
        fn default() -> Self {
            Self(atomic::Atomic::new(0))
        }
    }

    impl Seen {
        fn record(&self, callback: Callback) {
            let index = usize::from(!in_memalloc_noio());
            self.0[callback as usize][index].0.add(1, Relaxed);
        }

        /// Returns whether a callback ran, and always in a NOIO scope.
        fn inside(&self, callback: Callback) -> bool {
            let [inside, outside] = &self.0[callback as usize];
            inside.0.load(Relaxed) > 0 && outside.0.load(Relaxed) == 0
        }

        /// Returns whether a callback ran, and never in a NOIO scope.
        fn outside(&self, callback: Callback) -> bool {
            let [inside, outside] = &self.0[callback as usize];
            inside.0.load(Relaxed) == 0 && outside.0.load(Relaxed) > 0
        }
    }

    /// Records in which scope it is dropped.
    struct DropRecorder(Arc<Seen>);

    impl Drop for DropRecorder {
        fn drop(&mut self) {
            self.0.record(Callback::DropRequest);
        }
    }

    /// A driver that ends its requests when they time out.
    struct Driver<C>(PhantomData<C>);

    #[vtable]
    impl<C: Context> Operations for Driver<C> {
        type Context = C;
        type TagSetData = Arc<Seen>;
        type QueueData = Arc<Seen>;
        type HwData = ();
        type RequestData = DropRecorder;
        type Timer = NoTimer;

        fn init_hw_queue(seen: &Arc<Seen>, _: &Arc<Seen>, _: u32) -> impl PinInit<(), Error> {
            seen.record(Callback::InitHwQueue);
            Ok(())
        }

        fn init_request(seen: &Arc<Seen>) -> impl PinInit<DropRecorder> {
            seen.record(Callback::InitRequest);
            DropRecorder(seen.clone())
        }

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            rq.queue_data().record(Callback::QueueRq);
            rq.start().leave_in_flight();
            Ok(())
        }

        fn commit_rqs(hw: HwQueue<'_, Self>) {
            hw.queue_data().record(Callback::CommitRqs);
        }

        fn poll<'q>(hw: HwQueue<'q, Self>, _: &mut IoCompletionBatch<'_, Self>) -> u32 {
            hw.queue_data().record(Callback::Poll);
            0
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            rq.queue_data().record(Callback::Timeout);
            match rq.try_take() {
                Ok((rq, done)) => {
                    rq.complete();
                    done
                }
                Err(rq) => rq.reset_timer(),
            }
        }

        fn complete(rq: CompletingRequest<Self>) {
            rq.end(Err(BlkStatus::TIMEOUT));
        }
    }

    /// Makes C call each callback of a driver, and returns what they recorded.
    fn call_all<C: Context>() -> Result<Arc<Seen>> {
        let seen = Arc::new(Seen::default(), GFP_KERNEL)?;
        let options = TagSetOptions {
            timeout: Some(Delta::from_millis(10)),
            ..TagSetOptions::default()
        };
        let tags = TagSet::<Driver<C>>::new(options, Ok(seen.clone()))?;
        let data = KBox::pin_init(tags.disk_data(None, Ok(seen.clone())), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;
        // SAFETY: The queue is valid until it is destroyed.
        let hctxs = unsafe { (*queue).queue_hw_ctx };
        // SAFETY: Each queue has a hardware queue.
        let hctx = unsafe { *hctxs };
        let ops = Vtable::<Driver<C>>::get();
        if let (Some(commit_rqs), Some(poll)) = (ops.commit_rqs, ops.poll) {
            // SAFETY: The hardware queue is initialised, and stays valid until the queue is
            // destroyed.
            unsafe { commit_rqs(hctx) };
            // SAFETY: As above.
            unsafe { poll(hctx, ptr::null_mut()) };
        }
        // SAFETY: The queue is valid.
        let rq = from_err_ptr(unsafe {
            bindings::blk_mq_alloc_request(queue, bindings::req_op_REQ_OP_DRV_IN, 0)
        })
        .inspect(|rq| {
            // SAFETY: The request is new. The call waits until it has ended.
            unsafe { bindings::blk_execute_rq(*rq, false) };
            // SAFETY: The request has ended, and is not used again.
            unsafe { bindings::blk_mq_free_request(*rq) };
        });
        // SAFETY: The test owns the queue, and does not use it again.
        tags.with_fixed_queues(|_| unsafe { bindings::blk_mq_destroy_queue(queue) });
        // SAFETY: As above.
        unsafe { bindings::blk_put_queue(queue) };
        rq.map(|_| seen)
    }

    #[test]
    fn blocking_callbacks_run_in_a_noio_scope() -> Result {
        let seen = call_all::<Blocking>()?;
        assert!(seen.inside(Callback::InitRequest));
        assert!(seen.inside(Callback::InitHwQueue));
        assert!(seen.inside(Callback::QueueRq));
        assert!(seen.inside(Callback::CommitRqs));
        assert!(seen.inside(Callback::Poll));
        assert!(seen.inside(Callback::Timeout));
        assert!(seen.inside(Callback::DropRequest));
        Ok(())
    }

    #[test]
    fn nonblocking_dispatch_runs_outside_a_noio_scope() -> Result {
        let seen = call_all::<NonBlocking>()?;
        assert!(seen.inside(Callback::InitRequest));
        assert!(seen.inside(Callback::InitHwQueue));
        assert!(seen.outside(Callback::QueueRq));
        assert!(seen.outside(Callback::CommitRqs));
        assert!(seen.inside(Callback::Poll));
        assert!(seen.inside(Callback::Timeout));
        assert!(seen.inside(Callback::DropRequest));
        Ok(())
    }

    #[test]
    fn scopes_nest() {
        let before = in_memalloc_noio();
        memalloc_noio(|| {
            memalloc_noio(|| assert!(in_memalloc_noio()));
            assert!(in_memalloc_noio());
        });
        assert_eq!(in_memalloc_noio(), before);
    }
}
